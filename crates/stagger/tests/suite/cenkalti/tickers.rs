use core::future::ready;
use core::time::Duration;

use futures_lite::future::block_on;
use stagger::cenkalti::{self, ConstantBackOff, ExponentialBackOff, StopBackOff, ZeroBackOff, with_max_retries};
use stagger::testing::VirtualClock;
use stagger::{Cancel, Instant, time::Clock as _};

use super::super::support::ms;

const SECOND: Duration = Duration::from_secs(1);

/// Where the package takes a timer that is nil, there is a function without one.
#[tokio::test(start_paused = true)]
async fn ck_41_without_a_timer_there_is_one_and_the_first_tick_comes() {
    let start = tokio::time::Instant::now();
    let mut ticker = cenkalti::new_ticker(ConstantBackOff::new(SECOND));
    assert_eq!(ticker.tick().await.map(|tick| tick.number), Some(1));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(ticker.tick().await.map(|tick| tick.number), Some(2));
    assert_eq!(start.elapsed(), SECOND);
    assert_eq!(cenkalti::blocking::new_ticker(ZeroBackOff).next().map(|tick| tick.number), Some(1));
}

#[test]
fn ck_43_cancelled_before_it_begins_it_ticks_once() {
    for backoff in [ConstantBackOff::new(Duration::ZERO), ConstantBackOff::new(SECOND)] {
        let clock = VirtualClock::new();
        let cancel = Cancel::new();
        cancel.cancel();
        let ticker = cenkalti::blocking::new_ticker_with_timer(backoff, clock.clone());
        assert_eq!(ticker.cancelled_by(&cancel).count(), 1);

        let mut ticker = cenkalti::new_ticker_with_timer(backoff, clock.clone()).cancelled_by(ready(()));
        let ticks = [(); 3].map(|()| block_on(ticker.tick()).map(|tick| tick.number));
        assert_eq!((ticks, clock.sleeps()), ([Some(1), None, None], vec![]));
    }
}

#[test]
fn ck_45_stopping_twice_is_as_good_as_once() {
    let mut ticker = cenkalti::new_ticker_with_timer(ZeroBackOff, VirtualClock::new());
    assert!(block_on(ticker.tick()).is_some());
    ticker.stop();
    ticker.stop();
    assert_eq!(block_on(ticker.tick()), None);

    let mut ticker = cenkalti::blocking::new_ticker(ZeroBackOff);
    ticker.stop();
    ticker.stop();
    assert_eq!((ticker.next(), ticker.next()), (None, None));
}

#[test]
fn it_ticks_at_the_waits_of_the_backoff_and_ends_with_it() {
    let clock = VirtualClock::new();
    let options = ExponentialBackOff::options().randomization_factor(0.0).max_elapsed_time(SECOND * 2);
    let b = options.clock(clock.clone()).build().unwrap();
    let at: Vec<_> = cenkalti::blocking::new_ticker_with_timer(b, clock.clone()).map(|tick| tick.at).collect();
    let start = |at: Duration| Instant::ZERO.saturating_add(at);
    assert_eq!(at, [start(Duration::ZERO), start(ms(500)), start(ms(1_250))]);
}

#[test]
fn at_least_one_tick_comes() {
    assert_eq!(cenkalti::blocking::new_ticker(StopBackOff).count(), 1);
    assert_eq!(cenkalti::blocking::new_ticker(with_max_retries(ZeroBackOff, 3)).count(), 4);
    let mut ticker = cenkalti::new_ticker_with_timer(StopBackOff, VirtualClock::new());
    assert!(block_on(ticker.tick()).is_some());
    assert_eq!(block_on(ticker.tick()), None);
}

#[test]
fn a_ticker_begins_with_a_reset() {
    let mut b = with_max_retries(ZeroBackOff, 2);
    for _ in 0..2 {
        assert_eq!(cenkalti::blocking::new_ticker(&mut b).count(), 3);
    }
}

#[test]
fn no_tick_is_kept_in_store_while_the_work_takes_long() {
    let clock = VirtualClock::new();
    let ticker = cenkalti::blocking::new_ticker_with_timer(ConstantBackOff::new(SECOND), clock.clone());
    let mut ended = None;
    for tick in ticker.take(4) {
        if let Some(ended) = ended {
            assert_eq!(tick.at.saturating_since(ended), SECOND);
        }
        clock.advance(SECOND * 10);
        ended = Some(clock.now());
    }
}

#[test]
fn the_elapsed_time_can_be_read_while_a_ticker_runs_on_the_backoff() {
    let clock = VirtualClock::new();
    let b = ExponentialBackOff::options().randomization_factor(0.0).clock(clock.clone()).build().unwrap();
    let elapsed = b.elapsed_time();
    let mut ticker = cenkalti::blocking::new_ticker_with_timer(b, clock.clone());
    for want in [0, 500, 1_250] {
        assert!(ticker.next().is_some());
        assert_eq!((ticker.backoff().elapsed(), elapsed.get()), (ms(want), ms(want)));
    }
    // In another thread than the one that reads, and after a reset.
    let runs = std::thread::spawn(move || {
        ticker.reset();
        ticker.by_ref().take(2).count()
    });
    assert_eq!((runs.join().unwrap(), elapsed.get()), (2, ms(500 + 750)));
}

#[tokio::test(start_paused = true)]
async fn an_async_ticker_shows_its_backoff_too() {
    let mut ticker = cenkalti::new_ticker(ExponentialBackOff::options().clock(stagger::time::Tokio).build().unwrap());
    assert!(ticker.tick().await.is_some());
    tokio::time::sleep(SECOND).await;
    assert_eq!(ticker.backoff().elapsed(), SECOND);
}
