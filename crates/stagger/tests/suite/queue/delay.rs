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
use stagger::{Instant, Seed, time::Clock, time::Sleep, time::SleepFn};

use super::super::support::{EarlyTimer, PendingTimer, ms, nanos, poll_times};

/// Everything that is pending, with the time at which it came.
async fn all<T, S: Sleep>(queue: &mut DelayQueue<T, S>, clock: &impl Clock) -> Vec<(T, Duration)> {
    let start = clock.now();
    let mut came = Vec::new();
    while let Some(item) = queue.next().await {
        came.push((item, clock.now().saturating_since(start)));
    }
    came
}

#[tokio::test(start_paused = true)]
async fn it_sleeps_on_tokios_virtual_time() {
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
fn nothing_comes_early_whatever_the_timer_does() {
    for percent in [1, 50, 99, 100] {
        let timer = EarlyTimer::new(percent);
        let mut queue = DelayQueue::with_timer(timer.clone());
        let seed = Seed::new(u64::from(percent));
        for n in 0..200 {
            let after = nanos(seed.for_call(n).get() % 2_000_000_000);
            queue.push(after, after).unwrap();
        }
        for (after, came) in block_on(all(&mut queue, &timer)) {
            assert!(came >= after && came - after <= ms(1), "{percent} %: due after {after:?}, came after {came:?}");
        }
    }
}

#[test]
fn no_delay_touches_no_timer_and_goes_behind_what_is_due() {
    let clock = VirtualClock::new();
    let mut queue = DelayQueue::with_timer(clock.clone());
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
fn next_that_is_dropped_in_its_sleep_loses_nothing_and_sleeps_on() {
    let timer = PendingTimer::default();
    let mut queue = DelayQueue::with_timer(timer.clone());
    queue.push((), ms(50)).unwrap();
    assert!(poll_times(pin!(queue.next()), 1).is_pending());
    assert_eq!(queue.len(), 1);
    // The sleep that was begun is the one that goes on: a new one would be pending at its first poll.
    assert_eq!(poll_times(pin!(queue.next()), 1), Poll::Ready(Some(())));
    assert_eq!(timer.now(), Instant::ZERO.saturating_add(ms(50)));
}

/// Counts how often it is woken up.
#[derive(Default)]
struct Bell(AtomicU32);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn who_waits_is_woken_by_what_comes_earlier_and_by_nothing_else() {
    let clock = VirtualClock::new();
    let mut queue = DelayQueue::with_timer(SleepFn::with_clock(|_| pending::<()>(), clock.clone()));
    let far = queue.push("far", ms(100)).unwrap();
    let other = queue.push("other", ms(120)).unwrap();
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let wait = |queue: &mut DelayQueue<_, _>| {
        assert!(queue.poll_next(&mut Context::from_waker(&waker)).is_pending());
        bell.0.store(0, Ordering::SeqCst);
    };
    let rung = || bell.0.load(Ordering::SeqCst);
    wait(&mut queue);
    queue.push("later", ms(110)).unwrap();
    assert!(queue.reschedule(other, ms(130)));
    assert_eq!(rung(), 0);
    assert!(queue.reschedule(other, ms(90)));
    assert_eq!(rung(), 1);
    wait(&mut queue);
    queue.push("earlier", ms(20)).unwrap();
    assert_eq!(rung(), 1);
    wait(&mut queue);
    assert_eq!((queue.cancel(far), rung()), (Some("far"), 0));
    clock.advance(ms(110));
    let came: Vec<_> = core::iter::from_fn(|| block_on(queue.next())).collect();
    assert_eq!(came, ["earlier", "other", "later"]);
}

#[test]
fn what_is_due_leaves_other_tasks_their_turn() {
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

/// The clock stands still, so that nothing would ever be due.
#[test]
fn a_timer_that_does_not_sleep_gives_everything_in_order() {
    let mut queue = DelayQueue::with_timer(NoSleep);
    for after in [Duration::MAX, ms(1), Duration::from_secs(3_600), ms(2)] {
        queue.push(after, after).unwrap();
    }
    let came: Vec<_> = block_on(all(&mut queue, &NoSleep)).into_iter().map(|(after, _)| after).collect();
    assert_eq!(came, [ms(1), ms(2), Duration::from_secs(3_600), Duration::MAX]);
}

#[tokio::test(start_paused = true)]
async fn the_longest_wait_of_all_hinders_nobody() {
    let mut queue = DelayQueue::new().capacity(2);
    queue.push("never", Duration::MAX).unwrap();
    queue.push_at("not either", Instant::from_nanos(u64::MAX)).unwrap();
    assert_eq!(queue.push("no room", ms(1)), Err(QueueFull("no room")));
    let waited = tokio::time::timeout(Duration::from_secs(86_400 * 365), queue.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    assert_eq!(queue.into_pending().map(|(_, item)| item).collect::<Vec<_>>(), ["never", "not either"]);
}

#[test]
fn what_is_pending_comes_back_in_its_order_with_its_time() {
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
fn a_queue_can_be_moved_while_it_waits_and_sent_to_another_thread() {
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
fn a_queue_is_a_stream_that_ends_when_it_is_empty_and_goes_on_when_it_is_not() {
    use futures_lite::StreamExt;

    let mut queue = DelayQueue::with_timer(VirtualClock::new());
    for round in 0..2 {
        for n in [3, 1, 2] {
            queue.push((round, n), ms(n)).unwrap();
        }
        let came: Vec<_> = block_on((&mut queue).collect());
        assert_eq!(came, [(round, 1), (round, 2), (round, 3)]);
    }
}
