//! Time limits of attempts and of calls.

use core::cell::{Cell, RefCell};
use core::future::pending;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Barrier;

use futures_lite::future::block_on;
use stagger::budget::Tokens;
use stagger::observe::Action;
use stagger::testing::{NoSleep, Recorder, VirtualClock};
use stagger::time::{Clock as _, Sleep, SleepFn};
use stagger::{
    Attempt, Cancel, Cause, Guard as _, LastAttempt, Outcome, Policy, Rejected, Report, Retrier, RetryResultExt as _,
    StopReason, blocking, policy, retry_with_timer,
};

use super::support::{Fail, PanickingTimer, RecordingBreaker, ms, nanos};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));

/// Counts its drops.
struct CountDrops<'a>(&'a Cell<u32>);

impl Drop for CountDrops<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_timed_out_attempt_is_dropped_and_retried() {
    let (start, dropped) = (tokio::time::Instant::now(), Cell::new(0));
    let begun = RefCell::new(Vec::new());
    let hangs = async || {
        begun.borrow_mut().push(start.elapsed());
        let _guard = CountDrops(&dropped);
        pending::<Result<(), Fail>>().await
    };
    let error = stagger::retry(&POLICY, hangs).timeout(ms(50)).await.unwrap_err();
    assert_eq!((error.stop_reason(), error.cause()), (StopReason::Attempts, &Cause::Rejected(Rejected::TimedOut)));
    assert_eq!((error.attempts(), error.elapsed(), dropped.get()), (3, ms(170), 3));
    // The timeout starts with each attempt, after the sleep.
    assert_eq!(begun.into_inner(), [ms(0), ms(60), ms(120)]);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_does_not_affect_a_fast_attempt() {
    let start = tokio::time::Instant::now();
    let answers = async || {
        tokio::time::sleep(ms(49)).await;
        Ok::<_, Fail>(7)
    };
    assert_eq!(stagger::retry(&POLICY, answers).timeout(ms(50)).await, Ok(7));
    assert_eq!(start.elapsed(), ms(49));
}

#[tokio::test(start_paused = true)]
async fn the_cause_is_the_last_of_errors_and_timeouts() {
    let hangs_on_attempt = |which: u32| {
        let mut calls = 0;
        move || {
            calls += 1;
            let hangs = calls == which;
            async move { if hangs { pending().await } else { Err::<(), _>(Fail::TRANSIENT) } }
        }
    };
    let error = stagger::retry(&POLICY, hangs_on_attempt(2)).timeout(ms(5)).await.unwrap_err();
    assert_eq!(error.cause(), &Cause::Operation(Fail::TRANSIENT));
    let error = stagger::retry(&POLICY, hangs_on_attempt(3)).timeout(ms(5)).await.unwrap_err();
    assert_eq!(error.cause(), &Cause::Rejected(Rejected::TimedOut), "the last attempt");
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_can_be_left_untimed() {
    let calls = Cell::new(0);
    let slow = async || {
        calls.set(calls.get() + 1);
        tokio::time::sleep(ms(80)).await;
        Ok::<_, Fail>(calls.get())
    };
    let call = stagger::retry(&POLICY, slow).timeout(ms(50));
    assert_eq!(call.await.unwrap_err().attempts(), 3, "all three are too slow");
    calls.set(0);
    let call = stagger::retry(&POLICY, slow).timeout(ms(50)).last_attempt(LastAttempt::Untimed);
    assert_eq!(call.await, Ok(3));

    // The deadline still applies.
    let call = stagger::retry(&POLICY, slow).timeout(ms(50)).last_attempt(LastAttempt::Untimed).within(ms(150));
    let error = call.await.unwrap_err();
    assert_eq!((error.attempts(), error.elapsed(), error.cause()), (3, ms(150), &Cause::Rejected(Rejected::TimedOut)));
}

#[tokio::test(start_paused = true)]
async fn within_interrupts_an_attempt_and_prevents_late_retries() {
    let start = tokio::time::Instant::now();
    let hangs = async || pending::<Result<(), Fail>>().await;
    let error = stagger::retry(&POLICY, hangs).within(ms(25)).await.unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), start.elapsed()), (StopReason::Deadline, 1, ms(25)));

    // Attempts of 20 ms and delays of 10 ms: the second would start at 30 ms.
    for (limit, attempts) in [(29, 1), (30, 1), (31, 2)] {
        let start = tokio::time::Instant::now();
        let fails = async || {
            tokio::time::sleep(ms(20)).await;
            Err::<(), _>(Fail::TRANSIENT)
        };
        let error = stagger::retry(&POLICY, fails).within(ms(limit)).await.unwrap_err();
        assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Deadline, attempts), "{limit} ms");
        let elapsed = if attempts == 1 { ms(20) } else { ms(31) };
        assert_eq!(start.elapsed(), elapsed, "{limit} ms: no sleep before the stop");
    }
}

#[test]
fn the_elapsed_limit_of_a_policy_does_not_interrupt_attempts() {
    let policy = POLICY.to_builder().max_elapsed(ms(25)).build().unwrap();
    let clock = VirtualClock::new();
    let slow = || {
        clock.advance(ms(1_000));
        Ok::<_, Fail>(7)
    };
    assert_eq!(blocking::retry(&policy, slow).timer(&clock).run(), Ok(7));
}

#[test]
fn a_blocking_attempt_receives_its_time_limit() {
    let (clock, limits_seen) = (VirtualClock::new(), RefCell::new(Vec::new()));
    let operation = |attempt: Attempt| {
        limits_seen.borrow_mut().push((attempt.number, attempt.time_limit));
        assert_eq!(attempt.is_last(), attempt.number == 3);
        clock.advance(ms(30));
        Err::<(), _>(Fail::TRANSIENT)
    };
    blocking::retry_with(&POLICY, operation).timer(&clock).run().unwrap_err();
    assert_eq!(limits_seen.take(), [(1, None), (2, None), (3, None)]);

    let call = blocking::retry_with(&POLICY, operation).timer(&clock).timeout(ms(25));
    assert_eq!(call.run().unwrap_err().cause(), &Cause::Operation(Fail::TRANSIENT));
    assert_eq!(limits_seen.take(), [1, 2, 3].map(|number| (number, Some(ms(25)))));

    let call =
        blocking::retry_with(&POLICY, operation).timer(&clock).timeout(ms(25)).last_attempt(LastAttempt::Untimed);
    call.run().unwrap_err();
    assert_eq!(limits_seen.take(), [(1, Some(ms(25))), (2, Some(ms(25))), (3, None)]);

    // The time until the deadline, if less than the timeout.
    let call = blocking::retry_with(&POLICY, operation).timer(&clock).timeout(ms(25)).within(ms(60));
    let error = call.run().unwrap_err();
    assert_eq!(limits_seen.take(), [(1, Some(ms(25))), (2, Some(ms(20)))]);
    assert_eq!((error.stop_reason(), error.elapsed()), (StopReason::Deadline, ms(70)));

    let deadline = clock.now().saturating_add(ms(45));
    blocking::retry_with(&POLICY, operation).timer(&clock).deadline(deadline).run().unwrap_err();
    assert_eq!(limits_seen.take(), [(1, Some(ms(45))), (2, Some(ms(5)))]);

    // The limit is not zero because sockets treat zero as no limit.
    blocking::retry_with(&POLICY, operation).timer(&clock).timeout(Duration::ZERO).run().unwrap_err();
    assert_eq!(limits_seen.take(), [1, 2, 3].map(|number| (number, Some(nanos(1)))));
}

#[test]
fn a_timeout_of_zero_does_not_sleep_for_zero() {
    let clock = VirtualClock::new();
    let sleep = |length: Duration| {
        assert!(!length.is_zero(), "sleep of zero length");
        Sleep::sleep(&clock, length)
    };
    let hangs = async || pending::<Result<(), Fail>>().await;
    let call = retry_with_timer(&POLICY, SleepFn::with_clock(sleep, &clock), hangs).timeout(Duration::ZERO);
    assert_eq!(block_on(call).unwrap_err().stop_reason(), StopReason::Attempts);
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_a_retrier_apply_to_all_its_calls() {
    let retrier = Retrier::new(POLICY).timeout(ms(50));
    let hangs = async || pending::<Result<(), Fail>>().await;
    let timed_out = Err(Fail::from(Rejected::TimedOut));

    let start = tokio::time::Instant::now();
    assert_eq!(retrier.run(hangs).await.into_inner(), timed_out);
    assert_eq!(start.elapsed(), ms(170));
    let operation = async |limits: &mut Vec<_>, attempt: Attempt| {
        limits.push(attempt.time_limit);
        pending::<Result<(), Fail>>().await
    };
    let mut limits = Vec::new();
    assert_eq!(retrier.run_with(&mut limits, operation).await.into_inner(), timed_out);
    assert_eq!((limits, start.elapsed()), (vec![Some(ms(50)); 3], ms(340)));
    let mut call = retrier.call();
    while call.attempt(hangs()).await.is_none() {}
    assert_eq!(start.elapsed(), ms(510));

    let limits_seen = RefCell::new(Vec::new());
    let record = |attempt: Attempt| {
        limits_seen.borrow_mut().push(attempt.time_limit);
        Ok::<_, Fail>(())
    };
    retrier.blocking_call(record).run().unwrap();
    let untimed = retrier.clone().last_attempt(LastAttempt::Untimed);
    untimed.blocking_call(record).run().unwrap();
    let only = Retrier::new(POLICY.to_builder().max_attempts(1).build().unwrap());
    let untimed_and_only = only.clone().timeout(ms(50)).last_attempt(LastAttempt::Untimed);
    untimed_and_only.blocking_call(record).run().unwrap();
    assert_eq!(limits_seen.into_inner(), [Some(ms(50)), Some(ms(50)), None]);
    let slow = async || {
        tokio::time::sleep(ms(80)).await;
        Ok::<_, Fail>(7)
    };
    assert_eq!(only.timeout(ms(50)).run(slow).await.into_inner(), timed_out.map(|()| 0));
    assert_eq!(untimed_and_only.run(slow).await, Ok(7));
}

/// In virtual time, a ready attempt uses none of its limit and a pending attempt uses all of it.
#[test]
fn time_limits_work_in_virtual_time() {
    let clock = VirtualClock::new();
    let answers = async || Ok::<_, Fail>(7);
    assert_eq!(block_on(retry_with_timer(&POLICY, &clock, answers).timeout(ms(50))), Ok(7));
    assert_eq!(clock.elapsed(), ms(0));
    let hangs = async || pending::<Result<(), Fail>>().await;
    block_on(retry_with_timer(&POLICY, &clock, hangs).timeout(ms(50))).unwrap_err();
    assert_eq!(clock.elapsed(), ms(170));
}

/// Each row: a step that can reject the call, and the error that an async and a blocking call end with. A blocking
/// attempt cannot be interrupted.
#[test]
fn every_step_that_can_reject_keeps_an_output_chosen_before_it() {
    let (clock, open, cancel) = (VirtualClock::new(), RecordingBreaker::open(ms(3_600_000)), Cancel::new());
    cancel.cancel();
    let hangs = async || pending::<Result<(), Fail>>().await;
    let fails = || Err::<(), _>(Fail::TRANSIENT);
    let rejected = Fail(Outcome::Cancelled);
    assert_eq!(Fail::from(Rejected::TimedOut), rejected);
    macro_rules! assert_kept {
        ($call:expr, |$end:ident| $run:expr, $want:expr, $(.$step:ident($($argument:expr),*))+) => {
            let reports: [Report<(), Fail>; 2] = [
                { let $end = $call.with_report()$(.$step($($argument),*))+; $run },
                { let $end = $call$(.$step($($argument),*))+.with_report(); $run },
            ];
            let inner: [Result<(), Fail>; 2] = [
                { let $end = $call.with_inner_error()$(.$step($($argument),*))+; $run },
                { let $end = $call$(.$step($($argument),*))+.with_inner_error(); $run },
            ];
            let name = stringify!($call $(.$step)+);
            assert_eq!(inner, [Err($want); 2], "{name}");
            assert_eq!(reports.map(|report| report.result.into_inner()), inner, "{name}");
        };
    }
    macro_rules! assert_kept_by {
        ($($(.$step:ident($($argument:expr),*))+ => $blocking:expr;)+) => {$(
            let call = || retry_with_timer(&POLICY, &clock, hangs);
            assert_kept!(call(), |end| block_on(end), rejected, $(.$step($($argument),*))+);
            let call = || blocking::retry(&POLICY, fails).timer(&clock);
            assert_kept!(call(), |end| end.run(), $blocking, $(.$step($($argument),*))+);
        )+};
    }
    assert_kept_by! {
        .timeout(ms(1)) => Fail::TRANSIENT;
        .deadline(stagger::Instant::ZERO) => rejected;
        .within(ms(0)) => rejected;
        .last_attempt(LastAttempt::Untimed).within(ms(0)) => rejected;
        .guard(&open) => rejected;
    }
    let call = || retry_with_timer(&POLICY, &clock, hangs);
    assert_kept!(call(), |end| block_on(end), rejected, .cancelled_by(core::future::ready(())));
    let call = || blocking::retry(&POLICY, fails).timer(&clock);
    assert_kept!(call(), |end| end.run(), Fail::TRANSIENT, .cancelled_by(&cancel));
}

// [`Retrier::max_sleeping_threads`]: how many threads wait in blocking calls at a time.

const EVERY_SECOND: Policy = policy!(constant(secs(1)).max_attempts(2));

/// Makes a call that fails, whose wait makes another such call, and so on, each as its own thread would. Returns how
/// the innermost ended.
fn calls_during_calls(retrier: &Retrier, depth: usize) -> (usize, StopReason) {
    let innermost = Cell::new(None);
    let timer = SleepFn::new(|_: Duration| {
        if depth < 20 && innermost.get().is_none() {
            innermost.set(Some(calls_during_calls(retrier, depth + 1)));
        }
    });
    let error = retrier.blocking_call(|_| Err::<(), _>("down")).timer(timer).run().unwrap_err();
    assert_eq!(error.error(), Some(&"down"), "the operation's own error");
    innermost.get().unwrap_or((depth, error.stop_reason()))
}

#[test]
fn no_more_threads_than_allowed_are_asleep() {
    for most in [0, 1, 3] {
        let retrier = Retrier::new(EVERY_SECOND).max_sleeping_threads(most);
        assert_eq!(calls_during_calls(&retrier.clone(), 0), (most, StopReason::Threads), "{most} allowed");
        assert_eq!(retrier.sleeping_threads(), 0, "all are awake again");
    }
    assert_eq!(calls_during_calls(&Retrier::new(EVERY_SECOND), 0).0, 20, "without a limit");
}

#[test]
fn of_eight_threads_three_wait_and_five_stop_at_once() {
    const ALLOWED: usize = 3;
    let retrier = Retrier::new(EVERY_SECOND).max_sleeping_threads(ALLOWED);
    let (asleep, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // The three sleep until the five have stopped.
    let refused = Barrier::new(8);
    let stops: Vec<_> = std::thread::scope(|scope| {
        let call = || {
            let nap = SleepFn::new(|_: Duration| {
                most.fetch_max(asleep.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                refused.wait();
                asleep.fetch_sub(1, Ordering::SeqCst);
            });
            let error = retrier.blocking_call(|_| Err::<(), _>("down")).timer(nap).run().unwrap_err();
            if error.stop_reason() == StopReason::Threads {
                assert_eq!(error.attempts(), 1);
                refused.wait();
            }
            error.stop_reason()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(stops.iter().filter(|stop| **stop == StopReason::Threads).count(), 5, "{stops:?}");
    assert_eq!(most.into_inner(), ALLOWED);
    assert_eq!(retrier.sleeping_threads(), 0);
}

#[test]
fn a_call_that_may_not_wait_gives_back_what_the_budget_charged() {
    let budget = std::sync::Arc::new(Tokens::new());
    let recorder = Recorder::new();
    let retrier = Retrier::new(EVERY_SECOND)
        .shared_guard(std::sync::Arc::clone(&budget) as _)
        .on_event(recorder.listener())
        .max_sleeping_threads(0);
    let before = budget.available();
    assert!(retrier.blocking(|| Err::<(), _>("down")).is_err());
    assert_eq!(budget.available(), before);
    let actions: Vec<_> = recorder.events().iter().map(|event| event.action).collect();
    assert_eq!(actions, [Action::Stop(StopReason::Threads)], "no retry is announced");
}

#[test]
fn a_retry_without_a_delay_needs_no_room() {
    const AT_ONCE: Policy = policy!(zero().max_attempts(3));
    let error = Retrier::new(AT_ONCE).max_sleeping_threads(0).blocking(|| Err::<(), _>("down")).unwrap_err();
    assert_eq!((error.attempts(), error.stop_reason()), (3, StopReason::Attempts));
}

#[test]
fn without_room_for_the_spread_the_first_attempt_is_made_at_once() {
    const SPREAD: Policy = policy!(constant(secs(1)).spread(secs(60)).max_attempts(2));
    let clock = VirtualClock::new();
    let retrier = Retrier::new(SPREAD).max_sleeping_threads(0);
    assert!(retrier.blocking_call(|_| Ok::<_, &str>(())).timer(clock.clone()).run().is_ok());
    assert_eq!(clock.elapsed(), Duration::ZERO);
}

#[test]
fn a_thread_whose_timer_panics_is_not_asleep_any_more() {
    let retrier = Retrier::new(EVERY_SECOND).max_sleeping_threads(1);
    let call = || retrier.blocking_call(|_| Err::<(), _>("down")).timer(PanickingTimer).run();
    assert!(std::panic::catch_unwind(core::panic::AssertUnwindSafe(call)).is_err());
    assert_eq!(retrier.sleeping_threads(), 0);
    let error = retrier.blocking_call(|_| Err::<(), _>("down")).timer(NoSleep).run().unwrap_err();
    assert_eq!(error.stop_reason(), StopReason::Attempts);
}
