//! How calls end, async and blocking, and what their errors say.

use core::cell::Cell;
use core::error::Error as _;
use core::future::{pending, ready};
use core::time::Duration;

use futures_lite::future::block_on;
use stagger::testing::{Script, VirtualClock};
use stagger::{Cancel, Marked, Policy, StopReason, blocking, policy, scope};
use stagger_cenkalti::{
    self as backoff, ConstantBackOff, ExponentialBackOff, StopBackOff, ZeroBackOff, with_max_retries,
};

use super::support::{PanickingTimer, PendingTimer, Run, ms, nanos, poll_times, run_both};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn ck_27_ten_retries_make_eleven_calls_and_return_the_last_error() {
    let Run { result, calls, .. } = run_both(|_| with_max_retries(ZeroBackOff, 10), Err::<(), _>);
    let error = result.unwrap_err();
    assert_eq!((calls, error.stop_reason(), error.error()), (11, StopReason::Exhausted, &11));
}

#[test]
fn zero_retries_make_one_call() {
    for run in [
        run_both(|_| with_max_retries(ZeroBackOff, 0), Err::<(), _>),
        // The same stop reason: the backoff returns no delay.
        run_both(|_| with_max_retries(StopBackOff, 9), Err::<(), _>),
    ] {
        assert_eq!((run.calls, run.result.unwrap_err().stop_reason(), run.sleeps), (1, StopReason::Exhausted, vec![]));
    }
}

/// The row returns the last value with the error. Here the error is returned alone; a caller that needs the value puts
/// it into the error.
#[test]
fn ck_31_the_value_of_the_successful_call_is_returned() {
    let operation = |call| if call < 3 { Err((1, "failed")) } else { Ok(42) };
    let Run { result, calls, .. } = run_both(|_| ZeroBackOff, operation);
    assert_eq!((result, calls), (Ok(42), 3));
    let Run { result, .. } = run_both(|_| with_max_retries(ZeroBackOff, 1), operation);
    assert_eq!(result.unwrap_err().error(), &(1, "failed"));
}

#[test]
fn ck_33_a_call_cancelled_before_its_start_runs_once() {
    for backoff in [ConstantBackOff::new(SECOND), ConstantBackOff::new(Duration::ZERO)] {
        let (clock, calls) = (VirtualClock::new(), Cell::new(0));
        let fails = || {
            calls.set(calls.get() + 1);
            Err::<(), _>("failed")
        };
        let cancel = Cancel::new();
        cancel.cancel();
        let in_blocking =
            backoff::blocking::retry(fails, backoff).timer(clock.clone()).cancelled_by(&cancel).run().unwrap_err();
        let in_async = backoff::retry(|| ready(fails()), backoff).timer(clock.clone()).cancelled_by(ready(()));
        let in_async = block_on(in_async.into_future()).unwrap_err();
        // Reports both the cancellation and the error of the operation.
        for error in [in_blocking, in_async] {
            assert_eq!((error.stop_reason(), error.attempts(), error.error()), (StopReason::Cancelled, 1, &"failed"));
        }
        assert_eq!((calls.get(), clock.sleeps()), (2, vec![]));
    }
}

#[test]
fn a_cancelled_call_still_returns_its_success() {
    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(backoff::blocking::retry(|| Ok::<_, ()>(1), StopBackOff).cancelled_by(&cancel).run(), Ok(1));
    let in_async = backoff::retry(|| ready(Ok::<_, ()>(1)), StopBackOff).cancelled_by(ready(()));
    assert_eq!(block_on(in_async.into_future()), Ok(1));
}

#[test]
fn cancellation_takes_precedence_over_an_exhausted_backoff() {
    let cancel = Cancel::new();
    let fails = || {
        cancel.cancel();
        Err::<(), _>("failed")
    };
    let error = backoff::blocking::retry(fails, StopBackOff).cancelled_by(&cancel).run().unwrap_err();
    assert_eq!((error.stop_reason(), error.error()), (StopReason::Cancelled, &"failed"));
    let in_async = backoff::retry(|| ready(Err::<(), _>("failed")), StopBackOff).cancelled_by(ready(()));
    assert_eq!(block_on(in_async.into_future()).unwrap_err().stop_reason(), StopReason::Cancelled);
}

#[test]
fn cancellation_wakes_a_blocking_sleep() {
    let cancel = Cancel::new();
    let handle = cancel.clone();
    let thread = std::thread::spawn(move || {
        let hour = ConstantBackOff::new(SECOND * 3600);
        backoff::blocking::retry(|| Err::<(), _>("failed"), hour).cancelled_by(&handle).run()
    });
    cancel.cancel();
    assert_eq!(thread.join().unwrap().unwrap_err().stop_reason(), StopReason::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn cancellation_ends_an_async_sleep_but_not_an_attempt() {
    let start = tokio::time::Instant::now();
    let operation = async || {
        tokio::time::sleep(SECOND * 5).await;
        Err::<(), _>("failed")
    };
    let call = |after| {
        let cancel = tokio::time::sleep(after);
        backoff::retry(operation, ConstantBackOff::new(SECOND * 10)).cancelled_by(cancel)
    };
    // During the second sleep.
    assert_eq!(call(SECOND * 22).await.unwrap_err().attempts(), 2);
    assert_eq!(start.elapsed(), SECOND * 22);
    // During the second attempt, which completes.
    assert_eq!(call(SECOND * 17).await.unwrap_err().attempts(), 2);
    assert_eq!(start.elapsed(), SECOND * 42);
}

#[test]
fn ck_39_notify_receives_each_retried_error_and_its_delay() {
    let backoff = |clock| ExponentialBackOff::options().random(|| 0.5).clock(clock).build().unwrap();
    let Run { result, notified, sleeps, .. } = run_both(backoff, |call| if call < 4 { Err(call) } else { Ok("done") });
    assert_eq!(result, Ok("done"));
    assert_eq!(notified, [(1, ms(500)), (2, ms(750)), (3, ms(1_125))]);
    assert_eq!(sleeps, [ms(500), ms(750), ms(1_125)]);
}

#[test]
fn notify_is_not_called_without_a_retry() {
    assert_eq!(run_both(|_| StopBackOff, |_| Err::<(), _>("failed")).notified, []);
    assert_eq!(run_both(|_| ZeroBackOff, |_| Ok::<_, &str>(())).notified, []);
    assert_eq!(run_both(|_| StopBackOff, |_| Ok::<_, &str>(())).calls, 1);
    let mut notified = 0;
    let operation = || Err::<(), _>(Marked::permanent("failed"));
    let call = backoff::blocking::retry(operation, ZeroBackOff).with_marks().notify(|_, _| notified += 1);
    assert_eq!((call.run(), notified), (Err("failed"), 0));
}

#[test]
fn notify_precedes_the_sleep_and_receives_the_unmarked_error() {
    let clock = VirtualClock::new();
    let mut notified = Vec::new();
    let call = backoff::blocking::retry(
        || Err::<(), _>(Marked::transient("failed")),
        with_max_retries(ConstantBackOff::new(SECOND), 2),
    );
    let reader = clock.clone();
    let call = call.with_marks().notify(|error: &&str, _| notified.push((*error, reader.elapsed())));
    assert_eq!(call.timer(clock).run(), Err("failed"));
    assert_eq!(notified, [("failed", Duration::ZERO), ("failed", SECOND)]);
}

#[test]
fn the_elapsed_limit_is_exact_to_the_nanosecond() {
    let limited = |limit: Duration| {
        move |clock| {
            let options =
                ExponentialBackOff::options().initial_interval(SECOND).multiplier(2.0).randomization_factor(0.0);
            options.max_elapsed_time(limit).clock(clock).build().unwrap()
        }
    };
    // Delays of 1, 2 and 4 s: the third may end exactly at the limit, but not a nanosecond later.
    for (limit, calls) in [(nanos(6_999_999_999), 3), (SECOND * 7, 4), (nanos(7_000_000_001), 4)] {
        let run = run_both(limited(limit), |_| Err::<(), _>("failed"));
        let error = run.result.unwrap_err();
        assert_eq!((run.calls, error.stop_reason()), (calls, StopReason::Exhausted), "{limit:?}");
        assert_eq!(error.elapsed(), run.sleeps.iter().sum());
    }
}

#[test]
fn the_duration_of_the_operation_counts_toward_the_limit() {
    let clock = VirtualClock::new();
    let options = ExponentialBackOff::options().initial_interval(SECOND).randomization_factor(0.0).multiplier(1.0);
    let backoff = options.max_elapsed_time(SECOND * 10).clock(clock.clone()).build().unwrap();
    let mut calls = 0;
    let takes_four = || {
        calls += 1;
        clock.advance(SECOND * 4);
        Err::<(), _>("failed")
    };
    // 4 + 1 + 4 + 1: the third call starts exactly at the limit, which is allowed; a fourth is not.
    assert!(backoff::blocking::retry(takes_four, backoff).timer(clock.clone()).run().is_err());
    assert_eq!((calls, clock.elapsed()), (3, SECOND * 14));
}

#[test]
fn a_call_resets_a_borrowed_backoff() {
    let mut b = with_max_retries(ConstantBackOff::new(SECOND), 2);
    for _ in 0..2 {
        let (clock, mut script) = (VirtualClock::new(), Script::new([Err("a"), Err("b"), Ok(3)]));
        let call = backoff::blocking::retry(|| script.next("no more"), &mut b).timer(clock.clone());
        assert_eq!((call.run(), clock.sleeps().len()), (Ok(3), 2));
    }
}

#[test]
fn a_backoff_can_be_boxed() {
    let b: Box<dyn backoff::BackOff + Send> = Box::new(with_max_retries(ZeroBackOff, 1));
    assert_eq!(backoff::blocking::retry(|| Err::<(), _>("failed"), b).run(), Err("failed"));
}

#[test]
fn a_zero_delay_does_not_use_the_timer() {
    let fails = || Err::<(), _>("failed");
    let b = || with_max_retries(ZeroBackOff, 3);
    assert!(backoff::blocking::retry(fails, b()).timer(PanickingTimer).run().is_err());
    assert!(block_on(backoff::retry(|| ready(fails()), b()).timer(PanickingTimer).into_future()).is_err());
}

#[test]
fn calls_without_delays_yield_to_other_tasks() {
    let calls = Cell::new(0);
    let fails = || {
        calls.set(calls.get() + 1);
        ready(Err::<(), _>("failed"))
    };
    let call = core::pin::pin!(backoff::retry(fails, ZeroBackOff).timer(PanickingTimer).into_future());
    assert!(poll_times(call, 3).is_pending());
    assert!((3..=300).contains(&calls.get()), "{} calls", calls.get());
}

#[test]
fn a_future_dropped_during_a_sleep_makes_no_more_calls() {
    let calls = Cell::new(0);
    let fails = || {
        calls.set(calls.get() + 1);
        ready(Err::<(), _>("failed"))
    };
    let call = backoff::retry(fails, ConstantBackOff::new(SECOND)).timer(PendingTimer::default());
    let mut call = Box::pin(call.into_future());
    assert!(poll_times(call.as_mut(), 1).is_pending());
    drop(call);
    assert_eq!(calls.get(), 1);
    // A future that is never polled makes no call.
    drop(backoff::retry(fails, ZeroBackOff).into_future());
    assert_eq!(calls.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_runs_on_paused_tokio_time_and_can_be_spawned() {
    let start = tokio::time::Instant::now();
    let b = with_max_retries(ConstantBackOff::new(SECOND), 3);
    let call = backoff::retry(async || Err::<(), _>("failed"), b).cancelled_by(pending::<()>());
    let error = tokio::spawn(call.into_future()).await.unwrap().unwrap_err();
    assert_eq!((error.attempts(), error.elapsed(), start.elapsed()), (4, SECOND * 3, SECOND * 3));
}

#[test]
fn nested_calls_do_not_retry_in_either_direction() {
    const TWICE: Policy = policy!(zero().max_attempts(2));
    let (outer, inner) = (Cell::new(0), Cell::new(0));
    let count = |cell: &Cell<u32>| {
        cell.set(cell.get() + 1);
        Err::<(), _>("failed")
    };
    let nested = || {
        let _ = count(&outer);
        backoff::blocking::retry(|| count(&inner), with_max_retries(ZeroBackOff, 5)).run()
    };
    assert!(blocking::retry(&TWICE, nested).run().is_err());
    assert_eq!((outer.take(), inner.take()), (2, 2));

    let nested = || {
        let _ = count(&outer);
        blocking::retry(&TWICE, || count(&inner)).run()
    };
    assert!(backoff::blocking::retry(nested, with_max_retries(ZeroBackOff, 2)).run().is_err());
    assert_eq!((outer.take(), inner.take()), (3, 3));
    let depth = block_on(backoff::retry(async || Ok::<_, ()>(scope::depth()), ZeroBackOff).into_future());
    assert_eq!((depth, scope::depth()), (Ok(1), 0));
}

fn options(factor: f64, multiplier: f64) -> String {
    let options = ExponentialBackOff::options().randomization_factor(factor).multiplier(multiplier);
    options.build().unwrap_err().to_string()
}

#[test]
fn invalid_options_name_the_value_and_the_fix() {
    for (text, value, fix) in
        [(options(1.5, 2.0), "1.5", "use a share from 0 to 1"), (options(0.5, f64::NAN), "NaN", "use one, such as 1.5")]
    {
        assert!(text.contains(value) && text.contains(fix), "{text}");
        assert!(!text.starts_with(char::is_uppercase) && !text.ends_with('.'), "{text}");
    }
}

#[test]
fn a_failed_call_reports_attempts_reason_and_cause() {
    let fails = || Err::<(), _>(std::io::Error::other("connection refused"));
    let call = backoff::blocking::retry(fails, with_max_retries(ConstantBackOff::new(Duration::from_secs(3)), 1));
    let error = call.timer(VirtualClock::new()).detailed().run().unwrap_err();
    let text = "gave up after 2 attempts in 3s, the schedule has no further delay";
    assert_eq!(error.to_string(), text);
    assert_eq!(format!("{error:#}"), format!("{text}: connection refused"));
    assert_eq!(error.source().map(ToString::to_string), Some("connection refused".to_owned()));
    assert_eq!(error.into_inner().to_string(), "connection refused");
    let error = backoff::blocking::retry(fails, StopBackOff).detailed().run().unwrap_err();
    assert!(error.to_string().starts_with("gave up after 1 attempt in "), "{error}");
}

// Conformance rows of version 7 of the package. The crate follows version 4, so these tests use stagger's own API.

#[test]
fn ck_47_the_mark_is_removed_at_any_attempt_limit() {
    // In version 7, 0 means unlimited.
    let policies: [Policy; 3] =
        [policy!(zero().unlimited_attempts()), policy!(zero().max_attempts(1)), policy!(zero().max_attempts(2))];
    for policy in &policies {
        let fails = || Err::<(), _>(Marked::permanent("no such account"));
        assert_eq!(blocking::retry(policy, fails).run(), Err("no such account"));
    }
}

#[test]
fn ck_49_a_hint_beyond_the_elapsed_limit_stops_the_call() {
    const HOUR: Duration = Duration::from_secs(3600);
    const POLICY: Policy =
        policy!(exponential(ms(500), secs(60)).unlimited_attempts().max_elapsed(mins(15)).unlimited_hint());
    let clock = VirtualClock::new();
    let fails = || Err::<(), _>(Marked::retry_after("busy", HOUR));
    let error = blocking::retry(&POLICY, fails).timer(clock.clone()).detailed().run().unwrap_err();
    assert_eq!((error.stop_reason(), error.error(), clock.sleeps()), (StopReason::Elapsed, Some(&"busy"), vec![]));
}
