use core::future::pending;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::task::Wake;

use futures_lite::future::{block_on, yield_now};
use stagger::queue::{DelayQueue, QueueFull};
use stagger::testing::{NoSleep, VirtualClock};
use stagger::time::{Clock, Sleep, SleepFn};
use stagger::{Instant, Seed};

use super::super::support::{EarlyTimer, PendingTimer, ms, nanos, poll_times};

/// Takes all pending items and returns each with the time that passed before it was returned.
async fn drain<T, S: Sleep>(queue: &mut DelayQueue<T, S>, clock: &impl Clock) -> Vec<(T, Duration)> {
    let start = clock.now();
    let mut taken = Vec::new();
    while let Some(item) = queue.next().await {
        taken.push((item, clock.now().saturating_since(start)));
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn a_delay_queue_works_with_paused_tokio_time() {
    let start = tokio::time::Instant::now();
    let mut queue = DelayQueue::new();
    for (item, after) in [("day", 86_400_000), ("soon", 3), ("minute", 60_000), ("now", 0), ("second", 1_000)] {
        queue.push(item, ms(after)).unwrap();
    }
    for (want, after) in [("now", 0), ("soon", 3), ("second", 1_000), ("minute", 60_000), ("day", 86_400_000)] {
        assert_eq!(queue.next().await, Some(want));
        let late = start.elapsed().checked_sub(ms(after)).expect("never early");
        assert!(late <= ms(2), "{want}: {late:?} late");
    }
    assert_eq!(queue.next().await, None);
}

#[test]
fn items_are_never_early_even_if_the_timer_is() {
    for percent in [1, 50, 99, 100] {
        let timer = EarlyTimer::new(percent);
        let mut queue = DelayQueue::with_timer(timer.clone());
        let seed = Seed::new(u64::from(percent));
        for n in 0..200 {
            let after = nanos(seed.for_call(n).get() % 2_000_000_000);
            queue.push(after, after).unwrap();
        }
        for (after, taken) in block_on(drain(&mut queue, &timer)) {
            assert!(
                taken >= after && taken - after <= ms(1),
                "{percent} %: due after {after:?}, returned after {taken:?}"
            );
        }
    }
}

#[test]
fn an_item_without_delay_skips_the_timer_but_not_due_items() {
    let clock = VirtualClock::new();
    let mut queue = DelayQueue::with_timer(clock.clone());
    // Between two ticks: the next one would be too late.
    clock.advance(nanos(1));
    queue.push("due", ms(5)).unwrap();
    queue.push("at once", Duration::ZERO).unwrap();
    assert_eq!(block_on(queue.next()), Some("at once"));
    assert_eq!(clock.sleeps(), []);
    clock.advance(ms(7));
    queue.push("later at once", Duration::ZERO).unwrap();
    let (first, second) = (block_on(queue.next()), block_on(queue.next()));
    assert_eq!(((first, second), clock.sleeps()), ((Some("due"), Some("later at once")), vec![]));
}

#[test]
fn next_resumes_the_same_sleep_after_being_dropped() {
    let timer = PendingTimer::default();
    let mut queue = DelayQueue::with_timer(timer.clone());
    queue.push((), ms(50)).unwrap();
    assert!(poll_times(pin!(queue.next()), 1).is_pending());
    assert_eq!(queue.len(), 1);
    // A new sleep would be pending at its first poll.
    assert_eq!(poll_times(pin!(queue.next()), 1), Poll::Ready(Some(())));
    assert_eq!(timer.now(), Instant::ZERO.saturating_add(ms(50)));
}

/// A waker that counts how often it is woken.
#[derive(Default)]
struct WakeCounter(AtomicU32);

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn only_an_earlier_item_wakes_a_waiting_task() {
    let clock = VirtualClock::new();
    let mut queue = DelayQueue::with_timer(SleepFn::with_clock(|_| pending::<()>(), clock.clone()));
    let far = queue.push("far", ms(100)).unwrap();
    let other = queue.push("other", ms(120)).unwrap();
    let counter = Arc::new(WakeCounter::default());
    let waker = Waker::from(counter.clone());
    let wait = |queue: &mut DelayQueue<_, _>| {
        assert!(queue.poll_next(&mut Context::from_waker(&waker)).is_pending());
        counter.0.store(0, Ordering::SeqCst);
    };
    let wakes = || counter.0.load(Ordering::SeqCst);
    wait(&mut queue);
    queue.push("later", ms(110)).unwrap();
    assert!(queue.reschedule(other, ms(130)));
    assert_eq!(wakes(), 0);
    assert!(queue.reschedule(other, ms(90)));
    assert_eq!(wakes(), 1);
    wait(&mut queue);
    queue.push("earlier", ms(20)).unwrap();
    assert_eq!(wakes(), 1);
    wait(&mut queue);
    assert_eq!((queue.cancel(far), wakes()), (Some("far"), 0));
    clock.advance(ms(110));
    let taken: Vec<_> = core::iter::from_fn(|| block_on(queue.next())).collect();
    assert_eq!(taken, ["earlier", "other", "later"]);
}

#[test]
fn taking_due_items_yields_to_other_tasks() {
    let mut queue = DelayQueue::with_timer(NoSleep);
    for n in 0..1_000 {
        queue.push(n, Duration::ZERO).unwrap();
    }
    let turns = AtomicU32::new(0);
    block_on(futures_lite::future::or(async { while queue.next().await.is_some() {} }, async {
        loop {
            turns.fetch_add(1, Ordering::SeqCst);
            yield_now().await;
        }
    }));
    assert!(turns.load(Ordering::SeqCst) >= 10, "{turns:?}");
}

/// The clock does not advance, so no item would ever become due.
#[test]
fn a_timer_that_does_not_sleep_returns_all_items_in_order() {
    let mut queue = DelayQueue::with_timer(NoSleep);
    for after in [Duration::MAX, ms(1), Duration::from_secs(3_600), ms(2)] {
        queue.push(after, after).unwrap();
    }
    let taken: Vec<_> = block_on(drain(&mut queue, &NoSleep)).into_iter().map(|(after, _)| after).collect();
    assert_eq!(taken, [ms(1), ms(2), Duration::from_secs(3_600), Duration::MAX]);
}

#[tokio::test(start_paused = true)]
async fn the_longest_possible_delay_does_not_panic() {
    let mut queue = DelayQueue::new().capacity(2);
    queue.push("never", Duration::MAX).unwrap();
    queue.push_at("never at all", Instant::from_nanos(u64::MAX)).unwrap();
    assert_eq!(queue.push("no room", ms(1)), Err(QueueFull("no room")));
    let waited = tokio::time::timeout(Duration::from_secs(86_400 * 365), queue.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    assert_eq!(queue.into_pending().map(|(_, item)| item).collect::<Vec<_>>(), ["never", "never at all"]);
}

#[test]
fn into_pending_returns_items_in_order_with_their_due_time() {
    let clock = VirtualClock::new();
    clock.advance(ms(10));
    let mut queue = DelayQueue::with_timer(clock);
    for (item, after) in [("c", 7_000), ("a", 1), ("b", 300)] {
        queue.push(item, ms(after)).unwrap();
    }
    let at = |length: u64| Instant::ZERO.saturating_add(ms(10 + length));
    assert_eq!(queue.next_due(), Some(at(1)));
    assert_eq!(queue.into_pending().collect::<Vec<_>>(), [(at(1), "a"), (at(300), "b"), (at(7_000), "c")]);
}

#[test]
fn a_waiting_queue_can_be_moved_and_sent_to_another_thread() {
    fn is_send<T: Send + Unpin>(value: T) -> T {
        value
    }
    let timer = PendingTimer::default();
    let mut queue = DelayQueue::with_timer(timer);
    queue.push(1, ms(5)).unwrap();
    assert!(Pin::new(&mut pin!(queue.next())).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let mut moved = is_send(queue);
    assert_eq!(block_on(moved.next()), Some(1));
}

#[cfg(feature = "stream")]
#[test]
fn a_queue_is_a_stream_that_ends_when_empty_and_can_resume() {
    use futures_lite::StreamExt;

    let mut queue = DelayQueue::with_timer(VirtualClock::new());
    for round in 0..2 {
        for n in [3, 1, 2] {
            queue.push((round, n), ms(n)).unwrap();
        }
        let taken: Vec<_> = block_on((&mut queue).collect());
        assert_eq!(taken, [(round, 1), (round, 2), (round, 3)]);
    }
}
