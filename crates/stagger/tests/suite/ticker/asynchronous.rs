//! The async ticker: polling, cancel safety, and streams.

use core::cell::Cell;
use core::future::{Ready, ready};
use core::pin::pin;
use core::time::Duration;
use std::sync::Arc;

use futures_lite::future::block_on;
use stagger::testing::VirtualClock;
use stagger::{Instant, Jitter, Policy, Seed, policy, reconnect::Ticker, time::Clock, time::Sleep, time::SleepFn};

use super::super::support::{PanickingTimer, poll_times};

const SECOND: Duration = Duration::from_secs(1);
const STEADY: Policy = policy!(constant(secs(10)).jitter(Jitter::None).unlimited_attempts());

#[test]
fn an_async_ticker_ticks_like_a_blocking_one() {
    const POLICY: Policy = policy!(exponential(ms(100), secs(10)).spread(secs(1)).max_attempts(6).max_elapsed(secs(5)));
    for seed in (0..50).map(Seed::new) {
        let (a, b) = (VirtualClock::new(), VirtualClock::new());
        let mut ticker = Ticker::with_timer(a.clone(), &POLICY).seed(seed);
        let mut ticks = Vec::new();
        while let Some(tick) = block_on(ticker.tick()) {
            ticks.push(tick);
        }
        assert_eq!(block_on(ticker.tick()), None);
        let blocking: Vec<_> = stagger::blocking::Ticker::with_timer(b.clone(), &POLICY).seed(seed).collect();
        assert_eq!((ticks, a.sleeps()), (blocking, b.sleeps()));
    }
}

#[tokio::test(start_paused = true)]
async fn tick_resumes_the_same_wait_after_being_dropped() {
    let start = tokio::time::Instant::now();
    let mut ticker = Ticker::new(&STEADY);
    assert!(ticker.tick().await.is_some());
    for _ in 0..3 {
        assert!(tokio::time::timeout(SECOND * 3, ticker.tick()).await.is_err());
    }
    assert_eq!(start.elapsed(), SECOND * 9);
    assert_eq!(ticker.tick().await.map(|tick| tick.number), Some(2));
    assert_eq!(start.elapsed(), SECOND * 10);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_became_due_while_not_polled_is_not_lost() {
    let mut ticker = Ticker::new(&STEADY);
    assert!(ticker.tick().await.is_some());
    assert!(tokio::time::timeout(SECOND, ticker.tick()).await.is_err());
    tokio::time::sleep(SECOND * 60).await;
    let before = tokio::time::Instant::now();
    assert_eq!(ticker.tick().await.map(|tick| tick.number), Some(2));
    assert_eq!(before.elapsed(), Duration::ZERO);
    // Only one tick is pending.
    assert!(tokio::time::timeout(SECOND * 9, ticker.tick()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_future_ends_the_ticker_and_is_not_polled_again() {
    let start = tokio::time::Instant::now();
    let cancel = Box::pin(async { tokio::time::sleep(SECOND * 25).await });
    let mut ticker = Ticker::new(&STEADY).cancelled_by(cancel);
    let mut ticks = 0;
    while ticker.tick().await.is_some() {
        ticks += 1;
    }
    assert_eq!((ticks, start.elapsed()), (3, SECOND * 25));
    assert_eq!(ticker.tick().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_spread_can_be_cancelled() {
    const SPREAD: Policy = policy!(constant(secs(10)).spread(mins(600)).unlimited_attempts());
    let cancel = Box::pin(tokio::time::sleep(SECOND));
    let mut ticker = Ticker::new(&SPREAD).seed(Seed::new(1)).cancelled_by(cancel);
    assert_eq!(ticker.tick().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_reset_during_a_wait_restarts_the_wait() {
    let start = tokio::time::Instant::now();
    let mut ticker = Ticker::new(&STEADY);
    assert!(ticker.tick().await.is_some());
    assert!(tokio::time::timeout(SECOND * 4, ticker.tick()).await.is_err());
    ticker.reset();
    assert!(ticker.tick().await.is_some());
    assert_eq!(start.elapsed(), SECOND * 14);
}

#[tokio::test(start_paused = true)]
async fn no_tick_follows_a_stop_during_a_wait() {
    let mut ticker = Ticker::new(&STEADY);
    assert!(ticker.tick().await.is_some());
    assert!(tokio::time::timeout(SECOND, ticker.tick()).await.is_err());
    ticker.stop();
    ticker.stop();
    assert_eq!(ticker.tick().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_ticker_can_be_moved_into_a_task() {
    const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(5));
    let mut ticker = Ticker::new(&POLICY);
    let task = tokio::spawn(async move {
        while ticker.tick().await.is_some() {}
        ticker.ticks()
    });
    assert_eq!(task.await.unwrap(), 5);
}

/// A sleep that never ends; its reference count shows whether it has been dropped.
struct PendingSleep(#[expect(dead_code, reason = "only its drop matters")] Arc<()>);

impl Future for PendingSleep {
    type Output = ();

    fn poll(self: core::pin::Pin<&mut Self>, _: &mut core::task::Context<'_>) -> core::task::Poll<()> {
        core::task::Poll::Pending
    }
}

#[test]
fn dropping_or_stopping_a_ticker_drops_its_sleep() {
    let sleeps = Arc::new(());
    let waiting = || {
        let shared = Arc::clone(&sleeps);
        let mut ticker = Ticker::with_timer(SleepFn::new(move |_| PendingSleep(Arc::clone(&shared))), &STEADY);
        assert!(block_on(ticker.tick()).is_some());
        assert!(poll_times(pin!(ticker.tick()), 1).is_pending());
        ticker
    };
    let mut ticker = waiting();
    assert_eq!(Arc::strong_count(&sleeps), 3);
    ticker.stop();
    assert_eq!(Arc::strong_count(&sleeps), 2);
    drop(ticker);
    drop(waiting());
    assert_eq!(Arc::strong_count(&sleeps), 1);
}

/// A timer that counts the sleeps it creates and rearms.
#[derive(Default)]
struct CountingTimer {
    created: Cell<u32>,
    rearmed: Cell<u32>,
}

impl Clock for CountingTimer {
    fn now(&self) -> Instant {
        Instant::ZERO
    }
}

impl Sleep for CountingTimer {
    type Sleeping = Ready<()>;

    fn sleep(&self, _: Duration) -> Ready<()> {
        self.created.set(self.created.get() + 1);
        ready(())
    }

    fn rearm(&self, sleeping: &mut Ready<()>, _: Duration) {
        self.rearmed.set(self.rearmed.get() + 1);
        *sleeping = ready(());
    }
}

#[test]
fn one_sleep_is_created_and_rearmed_for_each_wait() {
    let timer = CountingTimer::default();
    let mut ticker = Ticker::with_timer(&timer, &STEADY);
    for _ in 0..4 {
        assert!(block_on(ticker.tick()).is_some());
    }
    assert_eq!((timer.created.get(), timer.rearmed.get()), (1, 2));
}

#[test]
fn ticks_without_delay_skip_the_timer_and_yield() {
    const ZERO: Policy = policy!(zero().unlimited_attempts());
    let mut ticker = Ticker::with_timer(PanickingTimer, &ZERO);
    let busy = async {
        while ticker.ticks() < 10_000 {
            ticker.tick().await;
        }
    };
    assert!(poll_times(pin!(busy), 3).is_pending());
    assert!((3..=300).contains(&ticker.ticks()), "{} ticks", ticker.ticks());
}

#[tokio::test(start_paused = true)]
async fn a_coarse_timer_keeps_the_mean_of_short_delays() {
    let policy =
        Policy::constant(Duration::from_micros(300)).jitter(Jitter::None).max_attempts(10_001).build().unwrap();
    let start = tokio::time::Instant::now();
    let mut ticker = Ticker::new(&policy);
    while ticker.tick().await.is_some() {}
    let mean = start.elapsed().as_secs_f64() / 10_000.0;
    assert!((mean - 300e-6).abs() < 30e-6, "{mean}");
}

#[cfg(feature = "stream")]
#[tokio::test(start_paused = true)]
async fn a_ticker_is_a_fused_stream() {
    use futures_lite::StreamExt as _;

    const POLICY: Policy = policy!(constant(secs(10)).jitter(Jitter::None).max_attempts(4));
    let start = tokio::time::Instant::now();
    let mut ticker = Ticker::new(&POLICY);
    assert_eq!((&mut ticker).map(|tick| tick.number).collect::<Vec<_>>().await, [1, 2, 3, 4]);
    assert_eq!((ticker.next().await, start.elapsed()), (None, SECOND * 30));

    let mut ticker =
        stagger::reconnect::interval(SECOND * 10, stagger::Ratio::ZERO, stagger::time::Tokio).spread(Duration::ZERO);
    assert_eq!((&mut ticker).take(3).count().await, 3);
    assert_eq!(start.elapsed(), SECOND * 50);
}
