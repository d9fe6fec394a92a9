//! Settled meaning 7: when the operation is called, that it runs at least once, and that a success is always returned.

use core::cell::{Cell, RefCell};
use core::future::{Ready, pending, poll_fn, ready};
use core::pin::pin;
use core::task::Poll;

use futures_lite::future::block_on;
use stagger::testing::VirtualClock;
use stagger::{
    BreakerOpen, Cancel, Cause, Guards, Policy, Rejected, StopReason, blocking, policy, retry_with_timer,
    time::Clock as _, time::SleepFn,
};

use super::support::{RecordingBreaker, ms, poll_times};

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
    let guards = Guards::none().breaker(&breaker);
    let want = Cause::Rejected(Rejected::BreakerOpen(BreakerOpen { retry_in: ms(20) }));

    let operation = || -> Result<(), &str> { unreachable!("the breaker is open") };
    let error = blocking::retry(&POLICY, operation).timer(&clock).guards(guards).run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), error.cause()), (StopReason::Breaker, 0, &want));

    let operation = async || -> Result<(), &str> { unreachable!("the breaker is open") };
    let error = block_on(retry_with_timer(&POLICY, &clock, operation).guards(guards)).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), error.cause()), (StopReason::Breaker, 0, &want));

    // If a later attempt is rejected, the call returns the last error: this breaker opens while the call sleeps.
    let breaker = RecordingBreaker::open(ms(0));
    let sleep = |length| {
        clock.advance(length);
        breaker.open_until(clock.now().saturating_add(ms(1)));
    };
    let call = blocking::retry(&POLICY, || Err::<(), _>("no")).timer(SleepFn::with_clock(sleep, &clock));
    let error = call.guards(Guards::none().breaker(&breaker)).run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), error.error()), (StopReason::Breaker, 1, Some(&"no")));
}
