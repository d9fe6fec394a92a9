//! Quiet periods of queues, batches and connections, by key, and in gauges.

use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::Arc;

use stagger::batch::Batch;
use stagger::guard::{End, Keyed, Permit, QuietPeriod};
use stagger::observe::Action;
use stagger::queue::{GiveUpReason, RetryQueue};
use stagger::reconnect::Reconnect;
use stagger::testing::{Recorder, VirtualClock};
use stagger::time::{Clock as _, Tokio};
use stagger::{Guard as _, Instant, Outcome, Policy, Rejected, Retrier, ServerHint, StopReason, policy};
use tokio::time::Instant as TokioInstant;

use super::support::ms;

const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(3));
const SECOND: Duration = Duration::from_secs(1);
const HINT: Outcome = Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(10))));

fn held() -> (Arc<QuietPeriod>, Retrier) {
    let quiet = Arc::new(QuietPeriod::new());
    (Arc::clone(&quiet), Retrier::new(POLICY).shared_guard(quiet))
}

fn waiting(quiet: &QuietPeriod) -> u32 {
    quiet.snapshot(&Instant::from_nanos(0)).waiting
}

#[tokio::test(start_paused = true)]
async fn items_that_are_due_stay_in_the_queue_during_a_pause_and_then_start_one_by_one() {
    let ((quiet, retrier), recorder) = (held(), Recorder::new());
    let mut queue = RetryQueue::new(retrier.on_event(recorder.listener()));
    let start = TokioInstant::now();
    let keys: Vec<_> = (0..2_000).map(|item| queue.push(item, ms(item)).unwrap()).collect();
    let first = queue.next().await.unwrap().unwrap();
    // The server refuses the first item, for all.
    assert!(queue.push_retry(first, HINT).is_ok());
    tokio::time::timeout(SECOND, queue.next()).await.unwrap_err();
    assert_eq!((queue.len(), waiting(&quiet)), (2_000, 999), "each item that is due has a place");
    // An item that waits can be cancelled.
    assert_eq!(queue.cancel(keys[3]), Some(3));
    // The probe, and then one per second and a little more, because no success was seen before.
    for (item, second) in [(1, 10), (2, 11), (4, 12), (5, 13), (6, 13), (7, 14)] {
        let job = queue.next().await.unwrap().unwrap();
        let waited = (TokioInstant::now() - start).as_secs();
        assert_eq!((job.item, job.number(), waited), (item, 1, second));
        job.succeeded();
    }
    let actions: Vec<_> = recorder.events().iter().map(|event| event.action).collect();
    assert!(matches!(actions[1], Action::Held { .. }), "{actions:?}");
    let held = actions.iter().filter(|action| matches!(action, Action::Held { .. } | Action::Resumed)).count();
    assert_eq!(held, 1, "others still wait: {actions:?}");
    drop(queue);
    assert_eq!(waiting(&quiet), 0);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_waits_polls_only_when_its_turn_comes() {
    let (quiet, retrier) = held();
    quiet.pause(10 * SECOND, &Tokio.now());
    let mut queue = RetryQueue::new(retrier);
    queue.push("item", Duration::ZERO).unwrap();
    let mut polls = 0;
    let job = core::future::poll_fn(|cx| {
        polls += 1;
        queue.poll_next(cx)
    });
    job.await.unwrap().unwrap().succeeded();
    assert!(polls <= 4, "{polls} polls in ten seconds");
}

#[tokio::test(start_paused = true)]
async fn a_queue_keeps_its_items_in_every_mode_and_begins_none_past_it() {
    let quiet = Arc::new(QuietPeriod::builder().max_waiting(0).build().unwrap());
    quiet.pause(10 * SECOND, &Tokio.now());
    let mut queue = RetryQueue::new(Retrier::new(POLICY).shared_guard(quiet));
    let Err(gave_up) = queue.begin("now") else { panic!("it is held") };
    assert_eq!((gave_up.item, gave_up.reason), ("now", GiveUpReason::Stop(StopReason::QUIET)));
    queue.push("later", Duration::ZERO).unwrap();
    let start = TokioInstant::now();
    assert_eq!(queue.next().await.unwrap().unwrap().succeeded(), "later");
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn the_next_round_of_a_batch_waits_for_the_end_of_a_pause() {
    let (quiet, retrier) = held();
    let mut batch = Batch::<_, &str, _>::new(retrier, [("a", 1), ("b", 2)]);
    let start = TokioInstant::now();
    assert!(batch.next_attempt().await);
    batch.failed("b", Outcome::TRANSIENT, "busy").unwrap();
    // Another call meets the hint before the round is due.
    quiet.pause(10 * SECOND, &Tokio.now());
    assert!(batch.next_attempt().await);
    assert_eq!(start.elapsed().as_secs(), 10);
    assert_eq!(batch.finish().succeeded(), 1);
}

#[tokio::test(start_paused = true)]
async fn attempts_to_connect_wait_for_the_end_of_a_pause() {
    let ((quiet, retrier), recorder) = (held(), Recorder::new());
    let retrier = retrier.on_event(recorder.listener());
    let mut reconnect = Reconnect::new(retrier, async || Ok::<_, std::io::Error>(TokioInstant::now()));
    let start = TokioInstant::now();
    for (pause, total) in [(10, 10), (5, 15)] {
        // The second time, during the wait after a loss.
        quiet.pause(pause * SECOND, &Tokio.now());
        let connected = reconnect.next().await.unwrap();
        assert_eq!((connected - start).as_secs(), total);
        // The next call finds that nobody waits.
        quiet.settle(Permit::NONE, End::Made(&Outcome::Success), &Tokio.now());
    }
    let actions: Vec<_> = recorder.events().iter().map(|event| event.action).collect();
    let [Action::Held { after }, Action::Resumed, Action::Done, ..] = actions[..] else { panic!("{actions:?}") };
    assert_eq!(after.as_secs(), 10);
    quiet.pause(5 * SECOND, &Tokio.now());
    tokio::time::timeout(SECOND, reconnect.next()).await.unwrap_err();
    assert_eq!(waiting(&quiet), 1, "the wait goes on at the next call");
    drop(reconnect);
    assert_eq!(waiting(&quiet), 0);
}

#[test]
fn a_connection_that_may_not_wait_gives_up_with_the_remaining_time() {
    let clock = VirtualClock::new();
    let quiet = Arc::new(QuietPeriod::builder().max_waiting(0).build().unwrap());
    quiet.pause(10 * SECOND, &clock.now());
    let retrier = Retrier::new(POLICY).shared_guard(quiet);
    let mut reconnect = Reconnect::with_timer(clock, retrier, || Ok::<_, std::io::Error>(()));
    let error = reconnect.next_blocking().unwrap_err();
    let stagger::Cause::Rejected(Rejected::ByGuard { guard: "quiet", retry_in }) = error.cause() else {
        panic!("{error:?}")
    };
    assert_eq!((error.stop_reason(), retry_in.as_secs()), (StopReason::QUIET, 10));
}

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(1_000_000_000_000 + seconds * 1_000_000_000)
}

#[test]
fn a_quiet_period_is_not_replaced_while_it_holds_calls_and_is_once_it_is_idle_after() {
    let customers: Keyed<u32, QuietPeriod> =
        Keyed::guards(|| QuietPeriod::builder().max(Duration::from_secs(3_600)).build().unwrap())
            .max_keys(NonZeroUsize::new(2).unwrap());
    for key in [1, 2] {
        customers.of(&key, at(0)).pause(Duration::from_secs(3_000), &at(0));
    }
    // Longer than `idle_after`, but the pauses are not over: a third key shares the overflow.
    let third = customers.of(&3, at(1_000));
    assert!(core::ptr::eq(&*third, customers.overflow()));
    for key in [1, 2] {
        assert!(!customers.of(&key, at(1_000)).retry_in(&at(1_000)).is_zero(), "{key} is still held");
    }
    // The pauses are over, and nobody has called since.
    let third = customers.of(&3, at(4_000));
    assert!(!core::ptr::eq(&*third, customers.overflow()));
    assert_eq!(customers.len(), 2);
}
