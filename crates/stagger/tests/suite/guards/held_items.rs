//! Items of a queue that a guard holds, by letting them wait or by rejecting them.

use core::pin::pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use futures_lite::future::block_on;
use stagger::guard::{Answer, Ask, End, Now, Permit};
use stagger::observe::Action;
use stagger::queue::{GiveUpReason, RetryQueue};
use stagger::testing::{Recorder, VirtualClock};
use stagger::{FailureKind, Guard, Instant, Outcome, Policy, Retrier, StopReason, policy};

use crate::suite::support::{Bulkhead, PendingTimer, RecordingBreaker, RecordingBudget, ms, poll_times};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));
const LIMITED: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(9).max_elapsed(ms(300)));

fn until(millis: u64) -> Instant {
    Instant::ZERO.saturating_add(ms(millis))
}

/// Returns guards that let no attempt start before this time: one that lets attempts wait, and one that rejects them.
fn holding(millis: u64) -> [(&'static str, Arc<dyn Guard>); 2] {
    let bulkhead = Bulkhead::new(100, Duration::MAX);
    bulkhead.close_until(until(millis));
    [("bulkhead", Arc::new(bulkhead)), ("breaker", Arc::new(RecordingBreaker::open(ms(millis))))]
}

/// Lets every attempt wait for ever, and asks for no limit.
#[derive(Debug, Default)]
struct Never(AtomicU64);

impl Guard for Never {
    fn name(&self) -> &'static str {
        "never"
    }

    fn ask(&self, _: Ask, held: Permit, _: &dyn Now) -> Answer {
        if held == Permit::NONE {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Answer::Wait { after: ms(1), permit: Permit(1) }
    }

    fn settle(&self, _: Permit, _: End<'_>, _: &dyn Now) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A guard need not know the limits of a call: none waits beyond them.
#[test]
fn the_limits_of_items_and_calls_end_a_wait_whatever_the_guard_says() {
    let (clock, never) = (VirtualClock::new(), Arc::new(Never::default()));
    let retrier = Retrier::new(LIMITED).shared_guard(never.clone());
    let mut queue = RetryQueue::with_timer(clock.clone(), &retrier);
    queue.push("item", Duration::ZERO).unwrap();
    let gave_up = block_on(queue.next()).unwrap().unwrap_err();
    assert_eq!((gave_up.item, gave_up.reason), ("item", GiveUpReason::Stop(StopReason::Guard("never"))));
    assert!((ms(298)..=ms(302)).contains(&clock.elapsed()), "{:?}", clock.elapsed());
    let error = retrier.blocking_call(|_| Ok::<_, &str>(())).timer(&clock).run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Guard("never"), 0));
    let error = block_on(retrier.run_on(&clock, async || Ok::<_, &str>(()))).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Guard("never"), 0));
    assert!((ms(890)..=ms(910)).contains(&clock.elapsed()), "{:?}", clock.elapsed());
    assert_eq!(never.0.load(Ordering::Relaxed), 0, "all places were given back");
}

#[test]
fn items_of_a_queue_begin_as_places_become_free() {
    let (clock, bulkhead) = (VirtualClock::new(), Arc::new(Bulkhead::new(2, Duration::MAX)));
    let mut queue = RetryQueue::with_timer(clock.clone(), Retrier::new(POLICY).shared_guard(bulkhead.clone()));
    for item in 0..4 {
        queue.push(item, Duration::ZERO).unwrap();
    }
    let mut next = || {
        let job = block_on(queue.next()).unwrap().unwrap();
        assert!(bulkhead.count().0 <= 2);
        job
    };
    let (zero, one) = (next(), next());
    // Dropped without an answer, and answered: both free the place of the next item in the line.
    drop(zero);
    let two = next();
    assert_eq!((one.succeeded(), two.item), (1, 2));
    let three = next();
    assert_eq!((two.succeeded(), three.succeeded(), bulkhead.count()), (2, 3, (0, 0)));
    assert!(clock.elapsed() <= ms(2));
}

#[test]
fn due_items_stay_and_can_be_cancelled_rescheduled_and_looked_at() {
    for (name, guard) in holding(u64::MAX / 2_000_000) {
        let budget = Arc::new(RecordingBudget::new(9));
        let retrier = Retrier::new(POLICY).shared_guard(guard).shared_guard(budget.clone());
        let mut queue = RetryQueue::with_timer(PendingTimer::default(), retrier);
        let keys: Vec<_> = (0..3).map(|item| queue.push(item, Duration::ZERO).unwrap()).collect();
        for _ in 0..10 {
            assert!(poll_times(pin!(queue.next()), 1).is_pending(), "{name}");
        }
        assert_eq!((queue.len(), queue.get(keys[1])), (3, Some(&1)), "{name}");
        assert_eq!(queue.cancel(keys[1]), Some(1), "{name}");
        assert!(queue.reschedule(keys[2], ms(5)), "{name}");
        assert!(poll_times(pin!(queue.next()), 1).is_pending(), "{name}");
        let left: Vec<_> = queue.into_pending().map(|pending| (pending.item, pending.paused.attempt())).collect();
        assert_eq!(left.len(), 2, "{name}");
        assert!(left.contains(&(0, 0)) && left.contains(&(2, 0)), "{name}: {left:?}");
        assert_eq!((budget.in_flight(), budget.snapshot().retries_left), (0, 9), "{name}");
    }
}

#[test]
fn an_item_that_is_held_gives_back_its_place_when_it_is_removed() {
    let bulkhead = Arc::new(Bulkhead::new(0, Duration::MAX));
    let retrier = Retrier::new(POLICY).shared_guard(bulkhead.clone());
    let mut queue = RetryQueue::with_timer(PendingTimer::default(), &retrier);
    let keys: Vec<_> = (0..3).map(|item| queue.push(item, Duration::ZERO).unwrap()).collect();
    assert!(poll_times(pin!(queue.next()), 1).is_pending());
    assert_eq!(bulkhead.count(), (0, 3));
    assert_eq!(queue.cancel(keys[0]), Some(0));
    assert_eq!(bulkhead.count(), (0, 2));
    let mut pending = queue.into_pending();
    assert_eq!(pending.next().map(|pending| pending.item), Some(1));
    assert_eq!(bulkhead.count(), (0, 1));
    drop(pending);
    assert_eq!(bulkhead.count(), (0, 0));
}

#[test]
fn held_items_begin_when_the_guard_lets_them_and_are_charged_once() {
    for (name, guard) in holding(200) {
        let (clock, budget) = (VirtualClock::new(), Arc::new(RecordingBudget::new(9)));
        let retrier = Retrier::new(POLICY).shared_guard(guard).shared_guard(budget.clone());
        let mut queue = RetryQueue::with_timer(clock.clone(), retrier);
        for item in 0..5 {
            queue.push(item, Duration::ZERO).unwrap();
        }
        let mut begun = Vec::new();
        while let Some(due) = block_on(queue.next()) {
            let job = due.unwrap();
            assert_eq!(job.number(), 1, "{name}");
            begun.push(job.succeeded());
        }
        begun.sort_unstable();
        assert_eq!(begun, [0, 1, 2, 3, 4], "{name}");
        assert!((ms(200)..ms(210)).contains(&clock.elapsed()), "{name}: {:?}", clock.elapsed());
        assert_eq!((budget.in_flight(), budget.snapshot().retries_left), (0, 9), "{name}");
    }
}

/// A retry that is held keeps what it was charged, or is charged again for what it got back.
#[test]
fn a_held_retry_is_charged_once() {
    for is_breaker in [false, true] {
        let (bulkhead, breaker) = (Arc::new(Bulkhead::new(1, Duration::MAX)), Arc::new(RecordingBreaker::open(ms(0))));
        let (clock, budget) = (VirtualClock::new(), Arc::new(RecordingBudget::new(1)));
        let retrier = Retrier::new(POLICY).shared_guard(bulkhead.clone()).shared_guard(breaker.clone());
        let mut queue = RetryQueue::with_timer(clock.clone(), retrier.shared_guard(budget.clone()));
        queue.push("item", Duration::ZERO).unwrap();
        let job = block_on(queue.next()).unwrap().unwrap();
        queue.push_retry(job, Outcome::TRANSIENT).unwrap();
        if is_breaker {
            breaker.open_until(until(200))
        } else {
            bulkhead.close_until(until(200))
        }
        let job = block_on(queue.next()).unwrap().unwrap();
        assert_eq!((job.number(), budget.snapshot().retries_left), (2, 0));
        assert!((ms(200)..ms(220)).contains(&clock.elapsed()), "{:?}", clock.elapsed());
        job.succeeded();
        assert_eq!((budget.in_flight(), breaker.in_flight(), bulkhead.count()), (0, 0, (0, 0)));
    }
}

/// Grants one retry, and none again when it is given back: another call has taken it.
#[derive(Debug)]
struct OneRetry(AtomicBool);

impl Guard for OneRetry {
    fn name(&self) -> &'static str {
        "one-retry"
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        if self.0.swap(true, Ordering::Relaxed) { None } else { Some(Permit(1)) }
    }

    fn settle(&self, _: Permit, _: End<'_>, _: &dyn Now) {}
}

#[test]
fn a_rejected_retry_that_cannot_be_charged_again_is_given_up_with_its_item() {
    let breaker = Arc::new(RecordingBreaker::open(ms(0)));
    let retrier = Retrier::new(POLICY).shared_guard(breaker.clone()).guard(OneRetry(AtomicBool::new(false)));
    let mut queue = RetryQueue::with_timer(VirtualClock::new(), retrier);
    let job = queue.begin("item").unwrap();
    queue.push_retry(job, Outcome::TRANSIENT).unwrap();
    breaker.open_until(until(200));
    let gave_up = block_on(queue.next()).unwrap().unwrap_err();
    let want = GiveUpReason::Stop(StopReason::Guard("one-retry"));
    assert_eq!((gave_up.item, gave_up.reason, gave_up.attempts), ("item", want, 1));
    assert!(queue.is_empty());
}

#[test]
fn max_elapsed_ends_held_items_which_are_given_back() {
    for (name, guard) in holding(5_000) {
        let (clock, recorder) = (VirtualClock::new(), Recorder::new());
        let retrier = Retrier::new(LIMITED).shared_guard(guard).on_event(recorder.listener());
        let mut queue = RetryQueue::with_timer(clock.clone(), retrier);
        queue.push("one", Duration::ZERO).unwrap();
        queue.push("two", ms(100)).unwrap();
        let mut ended = Vec::new();
        while let Some(due) = block_on(queue.next()) {
            let gave_up = due.unwrap_err();
            assert_eq!((gave_up.reason, gave_up.attempts), (GiveUpReason::Stop(StopReason::Guard(name)), 0));
            ended.push((gave_up.item, clock.elapsed()));
        }
        assert_eq!(ended.iter().map(|(item, _)| *item).collect::<Vec<_>>(), ["one", "two"], "{name}");
        // Each has as long as the policy allows, and is not kept for longer than it is of use.
        assert!(ended[0].1 <= ms(300) && ended[1].1 <= ms(400), "{name}: {ended:?}");
        let stops = recorder.events().iter().filter(|event| matches!(event.action, Action::Stop(_))).count();
        assert_eq!(stops, 2, "{name}");
    }
}

#[test]
fn a_listener_is_told_once_that_items_are_held_and_once_that_they_are_not() {
    for (name, guard) in holding(200) {
        let (clock, recorder) = (VirtualClock::new(), Recorder::new());
        let retrier = Retrier::new(POLICY).shared_guard(guard).on_event(recorder.listener());
        let mut queue = RetryQueue::with_timer(clock, retrier);
        for item in 0..50 {
            queue.push(item, ms(item)).unwrap();
        }
        while let Some(due) = block_on(queue.next()) {
            due.unwrap().succeeded();
        }
        let events = recorder.events();
        let count = |is: fn(&Action) -> bool| events.iter().filter(|event| is(&event.action)).count();
        assert_eq!(count(|action| matches!(action, Action::Held { .. })), 1, "{name}");
        assert_eq!(count(|action| matches!(action, Action::Resumed)), 1, "{name}");
        assert_eq!(count(|action| matches!(action, Action::Done)), 50, "{name}");
    }
}

/// The end of an open breaker is not always known: a queue asks again at least every ten seconds.
#[test]
fn a_breaker_that_closes_early_frees_the_items_within_ten_seconds() {
    let (clock, breaker) = (VirtualClock::new(), Arc::new(RecordingBreaker::open(Duration::MAX)));
    let mut queue = RetryQueue::with_timer(clock.clone(), Retrier::new(POLICY).shared_guard(breaker.clone()));
    queue.push("item", Duration::ZERO).unwrap();
    let closes = breaker.clone();
    let mut polls = 0;
    let next = core::future::poll_fn(|cx| {
        polls += 1;
        if polls == 1 {
            closes.open_until(until(25_000));
        }
        queue.poll_next(cx)
    });
    assert_eq!(block_on(next).unwrap().unwrap().succeeded(), "item");
    assert!((ms(25_000)..ms(35_010)).contains(&clock.elapsed()), "{:?}", clock.elapsed());
}
