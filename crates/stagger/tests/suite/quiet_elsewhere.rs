//! Quiet periods of queues, batches and connections, by key, and in gauges.

use core::num::NonZeroUsize;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;

use stagger::batch::Batch;
use stagger::guard::{Keyed, Limiter as _, LimiterMode, LimiterPermit, QuietPeriod, QuietTrigger};
use stagger::observe::Action;
use stagger::queue::{GiveUpReason, RetryQueue};
use stagger::reconnect::Reconnect;
use stagger::testing::{Recorder, VirtualClock};
use stagger::time::{Clock as _, Tokio};
use stagger::{Instant, Outcome, Policy, PollRetry, Rejected, Retrier, ServerHint, StopReason, policy};
use tokio::time::{Instant as TokioInstant, advance};

use super::support::ms;

const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(3));
const SECOND: Duration = Duration::from_secs(1);
const HINT: Outcome = Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(10))));

fn held() -> (Arc<QuietPeriod>, Retrier) {
    let quiet = Arc::new(QuietPeriod::new());
    (Arc::clone(&quiet), Retrier::new(POLICY).shared_quiet_period(quiet))
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
    assert_eq!((queue.len(), waiting(&quiet)), (2_000, 1), "one place is enough, and nothing is rejected");
    // An item that waits can be cancelled.
    assert_eq!(queue.cancel(keys[1]), Some(1));
    // The probe, the first of the return, and then one per second and a little more, because no success was seen
    // before.
    for (item, second) in [(2, 10), (3, 10), (4, 11), (5, 11), (6, 12), (7, 13)] {
        let job = queue.next().await.unwrap().unwrap();
        let waited = (TokioInstant::now() - start).as_secs();
        assert_eq!((job.item, job.number(), waited), (item, 1, second));
        job.succeeded();
    }
    let actions: Vec<_> = recorder.events().iter().map(|event| event.action).collect();
    assert!(matches!(actions[1], Action::Held { .. }), "{actions:?}");
    assert!(actions.contains(&Action::Resumed), "{actions:?}");
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
    let quiet = Arc::new(QuietPeriod::builder().mode(LimiterMode::FailFast).build().unwrap());
    quiet.pause(10 * SECOND, &Tokio.now());
    let mut queue = RetryQueue::new(Retrier::new(POLICY).shared_quiet_period(quiet));
    let Err(gave_up) = queue.begin("now") else { panic!("it is held") };
    assert_eq!((gave_up.item, gave_up.reason), ("now", GiveUpReason::Stop(StopReason::Quiet)));
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
        quiet.record(LimiterPermit::NONE, &Outcome::Success, &Tokio.now());
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
    let quiet = Arc::new(QuietPeriod::builder().mode(LimiterMode::FailFast).build().unwrap());
    quiet.pause(10 * SECOND, &clock.now());
    let retrier = Retrier::new(POLICY).shared_quiet_period(quiet);
    let mut reconnect = Reconnect::with_timer(clock, retrier, || Ok::<_, std::io::Error>(()));
    let error = reconnect.next_blocking().unwrap_err();
    let stagger::Cause::Rejected(Rejected::Quiet { retry_in }) = error.cause() else { panic!("{error:?}") };
    assert_eq!((error.stop_reason(), retry_in.as_secs()), (StopReason::Quiet, 10));
}

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(1_000_000_000_000 + seconds * 1_000_000_000)
}

#[test]
fn a_quiet_period_is_not_replaced_while_it_holds_calls_and_is_once_it_is_idle_after() {
    let customers: Keyed<u32, QuietPeriod> =
        Keyed::limiters(|| QuietPeriod::builder().max(Duration::from_secs(3_600)).build().unwrap())
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

fn begun(retrier: &Retrier, key: u64) -> (PollRetry<Tokio>, Poll<bool>) {
    let mut call = PollRetry::new(retrier, Tokio).quiet_by_key();
    let begun = call.poll_begin_at(|_| key, &mut Context::from_waker(Waker::noop()));
    (call, begun.map(|begun| begun.is_ok()))
}

fn refuse(retrier: &Retrier, key: u64, outcome: Outcome) {
    let (mut call, begun) = begun(retrier, key);
    assert_eq!(begun, Poll::Ready(true));
    call.answered_at(&outcome, &outcome, |_| key);
    assert!(call.failed::<()>(outcome, None).is_some());
}

const ONCE: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(1));

#[tokio::test(start_paused = true)]
async fn the_pause_of_one_key_holds_no_other_and_without_any_pause_no_key_is_asked_for() {
    let retrier = Retrier::new(ONCE).quiet_period(QuietPeriod::new());
    for _ in 0..20 {
        let mut call = PollRetry::new(&retrier, Tokio).quiet_by_key();
        let begun =
            call.poll_begin_at(|_| panic!("nobody has asked for quiet"), &mut Context::from_waker(Waker::noop()));
        assert!(begun.is_ready());
        let transient = Outcome::TRANSIENT;
        call.answered_at(&transient, &transient, |_| panic!("it is no hint"));
        assert!(call.failed::<()>(transient, None).is_some());
    }
    refuse(&retrier, 1, HINT);
    assert_eq!(begun(&retrier, 2).1, Poll::Ready(true));
    assert_eq!(begun(&retrier, 1).1, Poll::Pending);
    advance(10 * SECOND + ms(1)).await;
    assert_eq!(begun(&retrier, 1).1, Poll::Ready(true));
}

#[tokio::test(start_paused = true)]
async fn refusals_without_a_hint_begin_a_pause_only_if_the_quiet_period_says_so() {
    for (trigger, want) in [(QuietTrigger::Hints, Poll::Ready(true)), (QuietTrigger::HintsAndRefusals, Poll::Pending)] {
        let quiet = QuietPeriod::builder().trigger(trigger).build().unwrap();
        let retrier = Retrier::new(ONCE).quiet_period(quiet);
        for _ in 0..11 {
            let (mut call, _) = begun(&retrier, 1);
            let refused = Outcome::throttled(None);
            call.answered_at(&refused, &refused, |_| 1);
            let _ = call.failed::<()>(refused, None);
        }
        assert_eq!(begun(&retrier, 1).1, want, "{trigger:?}");
    }
}

/// The rate of a return is that of the key, estimated from a sample, and not that of the client.
#[tokio::test(start_paused = true)]
async fn a_key_returns_at_about_its_own_rate() {
    let retrier = Retrier::new(ONCE).quiet_period(QuietPeriod::new());
    // Key 1 has three of four calls, 300 per second, and key 2 the others.
    for n in 0..20_000_u64 {
        let key = if n % 4 == 0 { 2 } else { 1 };
        let (mut call, _) = begun(&retrier, key);
        call.answered_at(&Outcome::Success, &Outcome::Success, |_| key);
        call.succeeded();
        advance(Duration::from_micros(2_500)).await;
    }
    [1, 2].iter().for_each(|&key| refuse(&retrier, key, HINT));
    let mut held: Vec<_> = (0..1_800).map(|n| (n % 2 + 1, begun(&retrier, n % 2 + 1).0)).collect();
    advance(10 * SECOND).await;
    let mut started = [0_u32; 2];
    for _ in 0..1_000 {
        advance(ms(1)).await;
        held.retain_mut(|(key, call)| {
            let begun = call.poll_begin_at(|_| *key, &mut Context::from_waker(Waker::noop()));
            if begun.is_ready() {
                started[*key as usize - 1] += 1;
                call.answered_at(&Outcome::Success, &Outcome::Success, |_| *key);
                call.succeeded();
            }
            begun.is_pending()
        });
    }
    let [one, two] = started;
    assert!((200..=450).contains(&one) && (40..=200).contains(&two), "{started:?} in the first second");
}
