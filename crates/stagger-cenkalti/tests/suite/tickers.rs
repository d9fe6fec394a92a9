use core::future::ready;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use futures_lite::future::block_on;
use stagger::testing::VirtualClock;
use stagger::{Cancel, Instant, time::Clock as _};
use stagger_cenkalti::{
    self as backoff, ConstantBackOff, ExponentialBackOff, StopBackOff, ZeroBackOff, with_max_retries,
};

use super::support::{PanickingTimer, ms};

const SECOND: Duration = Duration::from_secs(1);

/// The package accepts a nil timer; here a constructor without a timer uses the default one.
#[tokio::test(start_paused = true)]
async fn ck_41_a_ticker_without_a_timer_uses_the_default_timer() {
    let start = tokio::time::Instant::now();
    let mut ticker = backoff::new_ticker(ConstantBackOff::new(SECOND));
    assert_eq!((ticker.tick().await.is_some(), ticker.ticks()), (true, 1));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!((ticker.tick().await.is_some(), ticker.ticks()), (true, 2));
    assert_eq!(start.elapsed(), SECOND);
    assert!(backoff::blocking::new_ticker(ZeroBackOff).next().is_some());
}

#[test]
fn ck_43_a_ticker_cancelled_before_its_start_ticks_once() {
    for backoff in [ConstantBackOff::new(Duration::ZERO), ConstantBackOff::new(SECOND)] {
        let clock = VirtualClock::new();
        let cancel = Cancel::new();
        cancel.cancel();
        let ticker = backoff::blocking::new_ticker_with_timer(backoff, clock.clone());
        assert_eq!(ticker.cancelled_by(&cancel).count(), 1);

        let mut ticker = backoff::new_ticker_with_timer(backoff, clock.clone()).cancelled_by(ready(()));
        let ticks = [(); 3].map(|()| block_on(ticker.tick()).is_some());
        assert_eq!((ticks, clock.sleeps()), ([true, false, false], vec![]));
    }
}

#[test]
fn ck_45_stop_is_idempotent() {
    let mut ticker = backoff::new_ticker_with_timer(ZeroBackOff, VirtualClock::new());
    assert!(block_on(ticker.tick()).is_some());
    ticker.stop();
    ticker.stop();
    assert_eq!(block_on(ticker.tick()), None);

    let mut ticker = backoff::blocking::new_ticker(ZeroBackOff);
    ticker.stop();
    ticker.stop();
    assert_eq!((ticker.next(), ticker.next()), (None, None));
}

#[test]
fn ticks_follow_the_delays_of_the_backoff_and_end_with_it() {
    let clock = VirtualClock::new();
    let options = ExponentialBackOff::options().randomization_factor(0.0).max_elapsed_time(SECOND * 2);
    let b = options.clock(clock.clone()).build().unwrap();
    let at: Vec<_> = backoff::blocking::new_ticker_with_timer(b, clock.clone()).collect();
    let start = |at: Duration| Instant::ZERO.saturating_add(at);
    assert_eq!(at, [start(Duration::ZERO), start(ms(500)), start(ms(1_250))]);
}

#[test]
fn a_ticker_ticks_at_least_once() {
    assert_eq!(backoff::blocking::new_ticker(StopBackOff).count(), 1);
    assert_eq!(backoff::blocking::new_ticker(with_max_retries(ZeroBackOff, 3)).count(), 4);
    let mut ticker = backoff::new_ticker_with_timer(StopBackOff, VirtualClock::new());
    assert!(block_on(ticker.tick()).is_some());
    assert_eq!(block_on(ticker.tick()), None);
}

#[test]
fn a_ticker_resets_its_backoff_at_the_start() {
    let mut b = with_max_retries(ZeroBackOff, 2);
    for _ in 0..2 {
        assert_eq!(backoff::blocking::new_ticker(&mut b).count(), 3);
    }
}

#[test]
fn ticks_do_not_accumulate_during_slow_work() {
    let clock = VirtualClock::new();
    let ticker = backoff::blocking::new_ticker_with_timer(ConstantBackOff::new(SECOND), clock.clone());
    let mut work_done = None;
    for tick in ticker.take(4) {
        if let Some(work_done) = work_done {
            assert_eq!(tick.saturating_since(work_done), SECOND);
        }
        clock.advance(SECOND * 10);
        work_done = Some(clock.now());
    }
}

#[test]
fn elapsed_time_is_readable_while_a_ticker_runs() {
    let clock = VirtualClock::new();
    let b = ExponentialBackOff::options().randomization_factor(0.0).clock(clock.clone()).build().unwrap();
    let elapsed = b.elapsed_time();
    let mut ticker = backoff::blocking::new_ticker_with_timer(b, clock.clone());
    for want in [0, 500, 1_250] {
        assert!(ticker.next().is_some());
        assert_eq!((ticker.backoff().elapsed(), elapsed.get()), (ms(want), ms(want)));
    }
    // Ticks on another thread, after a reset.
    let ticking = std::thread::spawn(move || {
        ticker.reset();
        ticker.by_ref().take(2).count()
    });
    assert_eq!((ticking.join().unwrap(), elapsed.get()), (2, ms(500 + 750)));
}

#[tokio::test(start_paused = true)]
async fn an_async_ticker_exposes_its_backoff() {
    let mut ticker = backoff::new_ticker(ExponentialBackOff::options().clock(stagger::time::Tokio).build().unwrap());
    assert!(ticker.tick().await.is_some());
    tokio::time::sleep(SECOND).await;
    assert_eq!(ticker.backoff().elapsed(), SECOND);
}

#[test]
fn ticks_without_delays_yield_to_other_tasks() {
    let mut ticker = backoff::new_ticker_with_timer(ZeroBackOff, PanickingTimer);
    let mut ticks = 0;
    let mut pending = 0;
    while ticks < 1_000 {
        match ticker.poll_tick(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(tick) => ticks += u32::from(tick.is_some()),
            Poll::Pending => pending += 1,
        }
    }
    assert!((3..=300).contains(&pending), "{pending} yields");
}

#[test]
fn a_reset_before_the_first_tick_or_after_the_end_changes_nothing() {
    let clock = VirtualClock::new();
    let b = with_max_retries(ConstantBackOff::new(SECOND), 1);
    let mut ticker = backoff::blocking::new_ticker_with_timer(b, clock.clone());
    ticker.reset();
    assert_eq!((ticker.by_ref().count(), clock.sleeps()), (2, vec![SECOND]));
    ticker.reset();
    assert_eq!((ticker.next(), ticker.ticks()), (None, 2));
}

#[cfg(feature = "stream")]
#[tokio::test(start_paused = true)]
async fn a_ticker_is_a_fused_stream() {
    use futures_lite::StreamExt as _;

    let start = tokio::time::Instant::now();
    let mut ticker = backoff::new_ticker(with_max_retries(ConstantBackOff::new(SECOND), 2));
    assert_eq!(((&mut ticker).count().await, start.elapsed()), (3, SECOND * 2));
    assert_eq!(ticker.next().await, None);
}
