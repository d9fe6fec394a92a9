//! What only one driver has.

use core::cell::Cell;
use core::future::poll_fn;
use core::panic::AssertUnwindSafe;
use core::pin::pin;
use core::task::Poll;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Arc;

use stagger::batch::Batch;
use stagger::queue::{GaveUp, GiveUpReason, Key, Queued, RetryQueue};
use stagger::testing::{NoSleep, VirtualClock};
use stagger::{Cancel, Guards, Outcome, StopReason, hedge::Hedge, hedge::hedge_with_timer, reconnect::Reconnect};

use super::world::{POLICY, World};
use super::{Driver, Trouble, with_every_guard};
use crate::suite::support::{Fail, PendingTimer, RecordingBreaker, RecordingBudget, ms, poll_times};

/// The loop was left while the next attempt was due: it had been let in, and was never made.
#[test]
fn a_call_by_hand_that_is_left_between_two_attempts_leaks_nothing() {
    with_every_guard(&[Driver::RetrierCall], |_, world| {
        for left_after in 1..=3 {
            let world = world(Trouble::Nothing);
            let retrier = world.retrier();
            let mut call = retrier.call_on(NoSleep);
            for _ in 0..left_after {
                let attempt = poll_times(pin!(call.attempt(world.attempt(&NoSleep))), 1);
                assert!(matches!(attempt, Poll::Ready(None)), "{attempt:?}");
            }
            drop(call);
            world.expect_settled(("left", left_after));
        }
    });
}

#[test]
fn a_call_that_its_caller_cancels_at_any_poll_leaks_nothing() {
    with_every_guard(&[Driver::CancelledBy], |_, world| {
        for nth in 1.. {
            let (world, mut left) = (world(Trouble::Nothing), nth);
            let cancel = poll_fn(|_| {
                left -= 1;
                if left == 0 { Poll::Ready(()) } else { Poll::Pending }
            });
            let (retrier, timer) = (world.retrier(), PendingTimer::default());
            let call = pin!(retrier.run_on(timer.clone(), || world.attempt(&timer)).cancelled_by(cancel));
            let Poll::Ready(Err(error)) = poll_times(call, 1_000) else { panic!("every attempt fails") };
            world.expect_settled(("cancelled at this poll", nth));
            if error.stop_reason() != StopReason::Cancelled {
                assert!(nth > 4, "it was never asked");
                break;
            }
        }
    });
}

/// The handle is cancelled while an attempt is made, so the call ends before the sleep after it.
#[test]
fn a_blocking_call_that_its_caller_cancels_leaks_nothing() {
    with_every_guard(&[Driver::Blocking], |_, world| {
        for last in 1..=3 {
            let (world, cancel) = (world(Trouble::Nothing), Cancel::new());
            let retrier = world.retrier();
            let call = retrier.blocking_call(|attempt| {
                if attempt.number == last {
                    cancel.cancel();
                }
                world.blocking_attempt()
            });
            let error = call.timer(VirtualClock::new()).cancelled_by(&cancel).run().unwrap_err();
            assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Cancelled, last));
            world.expect_settled(("cancelled in this attempt", last));
        }
    });
}

/// Two items that have failed once, and wait for their second attempt.
fn pending(world: &World) -> (RetryQueue<u64, NoSleep>, Vec<Key>) {
    let (budget, breaker) = world.shared();
    let mut queue = RetryQueue::with_timer(NoSleep, POLICY).budget(budget).breaker(breaker);
    let keys = (0..Driver::RetryQueue.calls()).map(|item| fail(&mut queue, item, world).unwrap().key).collect();
    (queue, keys)
}

/// The first attempt of this item.
fn fail(queue: &mut RetryQueue<u64, NoSleep>, item: u64, world: &World) -> Result<Queued, GaveUp<u64>> {
    let job = queue.begin(item).unwrap();
    let error = world.blocking_attempt().unwrap_err();
    queue.push_retry(job, world.judge(&error))
}

type Leave = fn(RetryQueue<u64, NoSleep>, Vec<Key>);

#[test]
fn what_waits_in_a_queue_leaks_nothing_however_it_leaves() {
    let leave: [(&str, Leave); 5] = [
        ("dropped", |queue, _| drop(queue)),
        ("handed back", |queue, _| assert_eq!(queue.into_pending().count(), 2)),
        ("handed back in part", |queue, _| assert!(queue.into_pending().next().is_some())),
        ("handed back and not taken", |queue, _| drop(queue.into_pending())),
        ("cancelled", |mut queue, keys| {
            assert!(keys.into_iter().all(|key| queue.cancel(key).is_some()));
            // Its drop shall not make up for it.
            core::mem::forget(queue);
        }),
    ];
    with_every_guard(&[Driver::RetryQueue], |_, world| {
        for (how, leave) in leave {
            let world = world(Trouble::Nothing);
            let (queue, keys) = pending(&world);
            leave(queue, keys);
            world.expect_settled(how);
        }
    });
}

#[test]
fn a_full_queue_gives_back_what_was_lent_for_what_it_refuses() {
    with_every_guard(&[Driver::RetryQueue], |_, world| {
        let world = world(Trouble::Nothing);
        let (budget, breaker) = world.shared();
        let mut queue = RetryQueue::with_timer(NoSleep, POLICY).budget(budget).breaker(breaker).capacity(1);
        let taken = fail(&mut queue, 1, &world).unwrap();
        assert_eq!(fail(&mut queue, 2, &world).unwrap_err().reason, GiveUpReason::Full);
        assert_eq!(queue.cancel(taken.key), Some(1));
        world.expect_settled("full");
    });
}

/// It is called in the middle of the decision about a round, whose outcome nobody has been told yet.
#[test]
fn a_dead_letter_box_that_panics_leaks_nothing() {
    with_every_guard(&[Driver::Batch], |_, world| {
        let world = world(Trouble::Nothing);
        let batch = Batch::with_timer(NoSleep, &POLICY, [("a", ()), ("b", ())]).guards(world.guards());
        let mut batch = batch.dead_letter(1.try_into().unwrap(), |_| resume_unwind(Box::new("as it shall")));
        assert!(poll_times(pin!(batch.next_attempt()), 1).is_ready());
        let error = world.blocking_attempt().unwrap_err();
        batch.all_failed(error.outcome(), |()| error);
        catch_unwind(AssertUnwindSafe(|| poll_times(pin!(batch.next_attempt()), 1))).unwrap_err();
        drop(batch);
        world.expect_settled("its dead letter box panicked");
    });
}

/// One budget for the retries and their copies: an attempt of the call is a place of its own beside those of the hedge.
#[test]
fn a_hedged_call_in_a_retried_one_leaks_nothing() {
    const HEDGE: Hedge = Hedge::after(ms(1)).with_max_copies(1);
    let places = Arc::new(stagger::budget::Concurrent::new());
    for polls in 0.. {
        let retrier = stagger::Retrier::new(POLICY).classify(Fail::outcome).shared_budget(places.clone());
        let timer = PendingTimer::default();
        let attempt = || async {
            stagger::time::Sleep::sleep(&timer, ms(2)).await;
            Err::<(), _>(Fail::TRANSIENT)
        };
        let hedged = || hedge_with_timer(&HEDGE, timer.clone(), attempt).classify(Fail::outcome).budget(&*places);
        let mut call = Box::pin(retrier.run_on(timer.clone(), hedged));
        let has_ended = polls > 0 && poll_times(call.as_mut(), polls).is_ready();
        drop(call);
        let seen = places.snapshot();
        assert_eq!((seen.firsts, seen.retries), (0, 0), "dropped after {polls} polls");
        if has_ended {
            assert!(polls > 10);
            break;
        }
    }
}

/// The connector outlives the panic of its operation, and connects when it is asked again.
#[test]
fn a_blocking_connector_whose_operation_panics_goes_on_and_leaks_nothing() {
    let (bank, gate, asked) = (RecordingBudget::new(9), RecordingBreaker::new(99, ms(1)), Cell::new(0));
    let connect = || {
        asked.set(asked.get() + 1);
        match asked.get() {
            1 => Err("no"),
            2 => resume_unwind(Box::new("as it shall")),
            _ => Ok(()),
        }
    };
    let mut links =
        Reconnect::with_timer(NoSleep, &POLICY, connect).guards(Guards::none().budget(&bank).breaker(&gate));
    catch_unwind(AssertUnwindSafe(|| links.next_blocking())).unwrap_err();
    assert_eq!(links.next_blocking(), Ok(()));
    drop(links);
    assert_eq!((bank.in_flight(), gate.in_flight()), (0, 0));
    assert_eq!(bank.snapshot().recorded, [Outcome::TRANSIENT, Outcome::Cancelled, Outcome::Success]);
}
