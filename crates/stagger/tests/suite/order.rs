//! Settled meaning 7: when the operation is called, that it runs at least once, and that a success is always returned.

use core::cell::{Cell, RefCell};
use core::future::{Ready, pending, poll_fn, ready};
use core::pin::pin;
use core::task::Poll;
use std::sync::Arc;

use futures_lite::future::block_on;
use stagger::observe::Action;
use stagger::testing::{Recorder, VirtualClock};
use stagger::time::{BlockingSleep, Clock as _, Sleep, SleepFn};
use stagger::{
    Cancel, Cause, Error, Policy, PollRetry, Rejected, Retrier, StopReason, blocking, policy, retry_with_timer,
};

use super::support::{RecordingBreaker, RecordingBudget, guarded, ms, poll_times};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));
const SPREAD: Policy = policy!(exponential(ms(10), ms(100)).spread(secs(60)));

#[test]
fn meaning_07_the_operation_is_called_after_the_sleep() {
    let (clock, called_at) = (VirtualClock::new(), RefCell::new(Vec::new()));
    let operation = || {
        called_at.borrow_mut().push(clock.elapsed());
        ready(Err::<(), _>("no"))
    };
    block_on(retry_with_timer(&POLICY, &clock, operation)).unwrap_err();
    assert_eq!(called_at.into_inner(), [ms(0), ms(10), ms(20)]);
}

#[test]
fn meaning_07_the_operation_is_not_called_before_the_first_poll() {
    let operation = || -> Ready<Result<(), &str>> { unreachable!("the call was never polled") };
    drop(retry_with_timer(&POLICY, VirtualClock::new(), operation));
}

#[test]
fn each_poll_of_a_call_polls_the_attempt_once() {
    let polls = Cell::new(0);
    let operation = || {
        poll_fn(|_| {
            polls.set(polls.get() + 1);
            Poll::<Result<(), &str>>::Pending
        })
    };
    let mut plain = pin!(retry_with_timer(&POLICY, VirtualClock::new(), operation));
    let mut with_report = pin!(retry_with_timer(&POLICY, VirtualClock::new(), operation).with_report());
    for poll in 1..=3 {
        assert!(poll_times(plain.as_mut(), 1).is_pending());
        assert!(poll_times(with_report.as_mut(), 1).is_pending());
        assert_eq!(polls.get(), 2 * poll);
    }
}

/// The deadline has passed before the call starts: there is no attempt, no wait and no permit.
#[test]
fn meaning_07_a_passed_deadline_rejects_the_first_attempt() {
    type Run = fn(&Retrier, &VirtualClock) -> Error<&'static str>;
    fn operation() -> Result<(), &'static str> {
        unreachable!("the deadline has passed")
    }
    let drivers: [(&str, Run); 5] = [
        ("blocking::retry", |retrier, clock| {
            blocking::retry(retrier.policy(), operation).timer(clock).deadline(clock.now()).run().unwrap_err()
        }),
        ("retry", |retrier, clock| {
            let call = retry_with_timer(retrier.policy(), clock, async || operation());
            block_on(call.deadline(clock.now())).unwrap_err()
        }),
        ("Retrier::blocking_call", |retrier, clock| {
            retrier.blocking_call(|_| operation()).timer(clock).deadline(clock.now()).run().unwrap_err()
        }),
        ("Retrier::run", |retrier, clock| {
            block_on(retrier.run_on(clock, async || operation()).deadline(clock.now())).unwrap_err()
        }),
        ("PollRetry", |retrier, clock| {
            let mut call = PollRetry::with_deadline(retrier, clock.clone(), Some(clock.now()));
            let rejected = block_on(poll_fn(|cx| call.poll_begin(cx))).unwrap_err();
            call.error(StopReason::Deadline, Cause::Rejected(rejected))
        }),
    ];
    for policy in [POLICY, SPREAD, Policy::stop().build().unwrap()] {
        for (driver, run) in drivers {
            let (clock, recorder) = (VirtualClock::new(), Recorder::new());
            clock.advance(ms(5));
            let (budget, breaker) = (Arc::new(RecordingBudget::new(9)), Arc::new(RecordingBreaker::open(ms(9))));
            let retrier = guarded(policy, &budget, &breaker).on_event(recorder.listener());
            let error = run(&retrier, &clock);
            assert_eq!(
                (error.stop_reason(), error.attempts(), error.cause()),
                (StopReason::Deadline, 0, &Cause::Rejected(Rejected::DeadlinePassed)),
                "{driver}, {policy}"
            );
            assert_eq!(clock.elapsed(), ms(5), "{driver}, {policy}: no time was spent waiting");
            assert_eq!((budget.snapshot().recorded, budget.in_flight()), (vec![], 0), "{driver}, {policy}");
            let events: Vec<_> = recorder.events().iter().map(|event| (event.attempt, event.action)).collect();
            let is_observed = !driver.ends_with("retry");
            let want = [(0, Action::Stop(StopReason::Deadline))];
            assert_eq!(events, &want[..usize::from(is_observed)], "{driver}, {policy}");
        }
    }
}

/// The timer wakes up later than the deadline, although the retry was to start before it.
#[test]
fn meaning_07_a_retry_that_would_start_after_the_deadline_is_not_made() {
    let clock = VirtualClock::new();
    let late = |length| BlockingSleep::sleep(&clock, length + ms(5));
    let call = blocking::retry(&POLICY, || Err::<(), _>("no")).timer(SleepFn::with_clock(late, &clock)).within(ms(15));
    let error = call.run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), error.error()), (StopReason::Deadline, 1, Some(&"no")));

    let late = |length| Sleep::sleep(&clock, length + ms(5));
    let timer = SleepFn::with_clock(late, &clock);
    let error = block_on(retry_with_timer(&POLICY, timer, async || Err::<(), _>("no")).within(ms(15))).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), error.error()), (StopReason::Deadline, 1, Some(&"no")));
}

#[test]
fn meaning_07_the_operation_runs_once_even_if_cancelled_before() {
    for policy in [POLICY, SPREAD] {
        let (clock, calls) = (VirtualClock::new(), Cell::new(0));
        let cancel = Cancel::new();
        cancel.cancel();
        let operation = || {
            calls.set(calls.get() + 1);
            Err::<(), _>("no")
        };
        let error = blocking::retry(&policy, operation).timer(&clock).cancelled_by(&cancel).run().unwrap_err();
        assert_eq!(
            (error.stop_reason(), error.error(), calls.get()),
            (StopReason::Cancelled, Some(&"no"), 1),
            "blocking, {policy}"
        );

        let operation = || {
            calls.set(calls.get() + 1);
            ready(Err::<(), _>("no"))
        };
        let call = retry_with_timer(&policy, &clock, operation).cancelled_by(async {});
        let error = block_on(call).unwrap_err();
        assert_eq!(
            (error.stop_reason(), error.error(), calls.get()),
            (StopReason::Cancelled, Some(&"no"), 2),
            "async, {policy}"
        );
        assert_eq!(clock.elapsed(), ms(0), "no time was spent waiting");
    }
}

#[test]
fn meaning_07_an_attempt_cancelled_before_is_polled_then_dropped() {
    let polled = Cell::new(false);
    let operation = async || {
        polled.set(true);
        pending::<Result<(), &str>>().await
    };
    let call = retry_with_timer(&SPREAD, VirtualClock::new(), operation).cancelled_by(async {});
    let error = block_on(call).unwrap_err();
    assert_eq!((error.stop_reason(), error.cause()), (StopReason::Cancelled, &Cause::Rejected(Rejected::Cancelled)));
    assert!(polled.get());
}

#[test]
fn meaning_07_a_success_is_returned_even_if_cancelled_meanwhile() {
    let cancel = Cancel::new();
    let operation = || {
        cancel.cancel();
        Ok::<_, &str>(7)
    };
    assert_eq!(blocking::retry(&POLICY, operation).timer(VirtualClock::new()).cancelled_by(&cancel).run(), Ok(7));

    let call = retry_with_timer(&POLICY, VirtualClock::new(), || ready(Ok::<_, &str>(7))).cancelled_by(async {});
    assert_eq!(block_on(call), Ok(7));
}

#[test]
fn meaning_07_an_open_breaker_rejects_the_first_attempt() {
    let (clock, breaker) = (VirtualClock::new(), RecordingBreaker::open(ms(30)));
    clock.advance(ms(10));
    let want = Cause::Rejected(Rejected::ByGuard { guard: "breaker", retry_in: ms(20) });

    let operation = || -> Result<(), &str> { unreachable!("the breaker is open") };
    let error = blocking::retry(&POLICY, operation).timer(&clock).guard(&breaker).run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), error.cause()), (StopReason::BREAKER, 0, &want));

    let operation = async || -> Result<(), &str> { unreachable!("the breaker is open") };
    let error = block_on(retry_with_timer(&POLICY, &clock, operation).guard(&breaker)).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), error.cause()), (StopReason::BREAKER, 0, &want));

    // If a later attempt is rejected, the call returns the last error: this breaker opens while the call sleeps.
    let breaker = RecordingBreaker::open(ms(0));
    let sleep = |length| {
        clock.advance(length);
        breaker.open_until(clock.now().saturating_add(ms(1)));
    };
    let call = blocking::retry(&POLICY, || Err::<(), _>("no")).timer(SleepFn::with_clock(sleep, &clock));
    let error = call.guard(&breaker).run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), error.error()), (StopReason::BREAKER, 1, Some(&"no")));
}
