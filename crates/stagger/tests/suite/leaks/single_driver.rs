//! Leaks that only a single driver could have.

use core::cell::Cell;
use core::future::poll_fn;
use core::panic::AssertUnwindSafe;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Arc;

use futures_lite::future::block_on;
use stagger::batch::Batch;
use stagger::hedge::{Hedge, hedge_with_timer};
use stagger::queue::{GaveUp, GiveUpReason, Key, Queued, RetryQueue};
use stagger::reconnect::Reconnect;
use stagger::testing::{NoSleep, VirtualClock};
use stagger::{Cancel, Outcome, StopReason};

use super::fixture::{Fixture, POLICY};
use super::{Driver, PanicPoint, for_each_guard};
use crate::suite::support::{Fail, PendingTimer, RecordingBreaker, RecordingBudget, guarded, ms, poll_times};

/// The loop ends while the next attempt is due: the guards admitted the attempt, but it never starts.
#[test]
fn a_manual_call_dropped_between_attempts_leaks_no_permits() {
    for_each_guard(&[Driver::RetrierCall], |_, new_fixture| {
        for attempts in 1..=3 {
            let fixture = new_fixture(PanicPoint::None);
            let retrier = fixture.retrier();
            let mut call = retrier.call_on(NoSleep);
            for _ in 0..attempts {
                let attempt = poll_times(pin!(call.attempt(fixture.attempt(&NoSleep))), 1);
                assert!(matches!(attempt, Poll::Ready(None)), "{attempt:?}");
            }
            drop(call);
            fixture.expect_settled(("attempts before the end", attempts));
        }
    });
}

#[test]
fn a_call_cancelled_at_any_poll_leaks_no_permits() {
    for_each_guard(&[Driver::CancelledBy], |_, new_fixture| {
        for nth in 1.. {
            let (fixture, mut polls_left) = (new_fixture(PanicPoint::None), nth);
            let cancel = poll_fn(|_| {
                polls_left -= 1;
                if polls_left == 0 { Poll::Ready(()) } else { Poll::Pending }
            });
            let (retrier, timer) = (fixture.retrier(), PendingTimer::default());
            let call = pin!(retrier.run_on(timer.clone(), || fixture.attempt(&timer)).cancelled_by(cancel));
            let Poll::Ready(Err(error)) = poll_times(call, 1_000) else { panic!("every attempt fails") };
            fixture.expect_settled(("cancelled at this poll", nth));
            if error.stop_reason() != StopReason::Cancelled {
                assert!(nth > 4, "the cancellation was never polled");
                break;
            }
        }
    });
}

/// The handle is cancelled during an attempt, so the call stops before the next sleep.
#[test]
fn a_cancelled_blocking_call_leaks_no_permits() {
    for_each_guard(&[Driver::Blocking], |_, new_fixture| {
        for last in 1..=3 {
            let (fixture, cancel) = (new_fixture(PanicPoint::None), Cancel::new());
            let retrier = fixture.retrier();
            let call = retrier.blocking_call(|attempt| {
                if attempt.number == last {
                    cancel.cancel();
                }
                fixture.blocking_attempt()
            });
            let error = call.timer(VirtualClock::new()).cancelled_by(&cancel).run().unwrap_err();
            assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Cancelled, last));
            fixture.expect_settled(("cancelled in this attempt", last));
        }
    });
}

/// Returns a queue with two items that failed once and wait for their second attempt.
fn pending(fixture: &Fixture) -> (RetryQueue<u64, VirtualClock>, Vec<Key>) {
    let mut queue = RetryQueue::with_timer(VirtualClock::new(), fixture.guarded());
    let keys = (0..Driver::RetryQueue.calls()).map(|item| fail(&mut queue, item, fixture).unwrap().key).collect();
    (queue, keys)
}

/// Fails the first attempt of the item.
fn fail(queue: &mut RetryQueue<u64, VirtualClock>, item: u64, fixture: &Fixture) -> Result<Queued, GaveUp<u64>> {
    queue.push(item, Duration::ZERO).unwrap();
    let job = block_on(queue.next()).unwrap().unwrap();
    let error = fixture.blocking_attempt().unwrap_err();
    queue.push_retry(job, fixture.classify(&error))
}

type Remove = fn(RetryQueue<u64, VirtualClock>, Vec<Key>);

#[test]
fn items_removed_from_a_queue_leak_no_permits() {
    let removals: [(&str, Remove); 5] = [
        ("dropped", |queue, _| drop(queue)),
        ("drained", |queue, _| assert_eq!(queue.into_pending().count(), 2)),
        ("partly drained", |queue, _| assert!(queue.into_pending().next().is_some())),
        ("drained without being consumed", |queue, _| drop(queue.into_pending())),
        ("cancelled", |mut queue, keys| {
            assert!(keys.into_iter().all(|key| queue.cancel(key).is_some()));
            // Its drop must not hide a leak.
            core::mem::forget(queue);
        }),
    ];
    for_each_guard(&[Driver::RetryQueue], |_, new_fixture| {
        for (how, remove) in removals {
            let fixture = new_fixture(PanicPoint::None);
            let (queue, keys) = pending(&fixture);
            remove(queue, keys);
            fixture.expect_settled(how);
        }
    });
}

#[test]
fn a_full_queue_releases_the_permit_of_a_rejected_item() {
    for_each_guard(&[Driver::RetryQueue], |_, new_fixture| {
        let fixture = new_fixture(PanicPoint::None);
        let mut queue = RetryQueue::with_timer(VirtualClock::new(), fixture.guarded()).capacity(1);
        queue.push(1, Duration::ZERO).unwrap();
        let job = block_on(queue.next()).unwrap().unwrap();
        let taken = fail(&mut queue, 2, &fixture).unwrap();
        let error = fixture.blocking_attempt().unwrap_err();
        assert_eq!(queue.push_retry(job, fixture.classify(&error)).unwrap_err().reason, GiveUpReason::Full);
        assert_eq!(queue.cancel(taken.key), Some(2));
        fixture.expect_settled("full");
    });
}

/// The handler runs after the outcome of the attempt is recorded, while the permits of the retry are held.
#[test]
fn a_panicking_dead_letter_handler_leaks_no_permits() {
    for_each_guard(&[Driver::Batch], |_, new_fixture| {
        let fixture = new_fixture(PanicPoint::None);
        let batch = Batch::with_timer(NoSleep, fixture.guarded(), [("a", ()), ("b", ())]);
        let mut batch = batch.dead_letter(1.try_into().unwrap(), |_| resume_unwind(Box::new("on purpose")));
        assert!(poll_times(pin!(batch.next_attempt()), 1).is_ready());
        let error = fixture.blocking_attempt().unwrap_err();
        batch.all_failed(fixture.classify(&error), |()| error);
        catch_unwind(AssertUnwindSafe(|| poll_times(pin!(batch.next_attempt()), 1))).unwrap_err();
        drop(batch);
        fixture.expect_settled("its dead-letter handler panicked");
    });
}

/// Retries and copies share a budget: an attempt of the call counts in addition to the attempts of the hedge.
#[test]
fn a_hedged_call_inside_a_retried_one_leaks_no_permits() {
    const HEDGE: Hedge = Hedge::after(ms(1)).with_max_copies(1);
    let budget = Arc::new(stagger::budget::Concurrent::new());
    for polls in 0.. {
        let retrier = stagger::Retrier::new(POLICY).classify(Fail::outcome).shared_guard(budget.clone());
        let timer = PendingTimer::default();
        let attempt = || async {
            stagger::time::Sleep::sleep(&timer, ms(2)).await;
            Err::<(), _>(Fail::TRANSIENT)
        };
        let hedged = || hedge_with_timer(&HEDGE, timer.clone(), attempt).classify(Fail::outcome).guard(&*budget);
        let mut call = Box::pin(retrier.run_on(timer.clone(), hedged));
        let has_completed = polls > 0 && poll_times(call.as_mut(), polls).is_ready();
        drop(call);
        let seen = budget.snapshot();
        assert_eq!((seen.firsts, seen.retries), (0, 0), "dropped after {polls} polls");
        if has_completed {
            assert!(polls > 10);
            break;
        }
    }
}

/// The connector survives a panic of its operation and connects at the next call.
#[test]
fn a_panicking_blocking_connector_recovers_without_leaks() {
    let (budget, breaker) = (Arc::new(RecordingBudget::new(9)), Arc::new(RecordingBreaker::new(99, ms(1))));
    let calls = Cell::new(0);
    let connect = || {
        calls.set(calls.get() + 1);
        match calls.get() {
            1 => Err("no"),
            2 => resume_unwind(Box::new("on purpose")),
            _ => Ok(()),
        }
    };
    let mut links = Reconnect::with_timer(NoSleep, guarded(POLICY, &budget, &breaker), connect);
    catch_unwind(AssertUnwindSafe(|| links.next_blocking())).unwrap_err();
    assert_eq!(links.next_blocking(), Ok(()));
    drop(links);
    assert_eq!((budget.in_flight(), breaker.in_flight()), (0, 0));
    assert_eq!(budget.snapshot().recorded, [Outcome::TRANSIENT, Outcome::Cancelled, Outcome::Success]);
}
