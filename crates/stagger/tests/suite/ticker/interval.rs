//! [`interval`]: periodic ticks with jitter.

use core::time::Duration;

use stagger::reconnect::interval;
use stagger::testing::VirtualClock;
use stagger::time::{Clock as _, ThreadSleep, Tokio};
use stagger::{Instant, Ratio, Seed, blocking};

use super::super::support::{assert_uniform, ms};

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn every_minute(
    clock: &VirtualClock,
    jitter: Ratio,
    seed: u64,
) -> blocking::Ticker<stagger::reconnect::Periodic, VirtualClock> {
    blocking::interval(MINUTE, jitter, clock.clone()).seed(Seed::new(seed))
}

fn since_start(at: Instant) -> Duration {
    at.saturating_since(Instant::ZERO)
}

#[test]
fn without_jitter_and_spread_ticks_are_periodic_from_the_start() {
    let clock = VirtualClock::new();
    let at: Vec<_> =
        every_minute(&clock, Ratio::ZERO, 1).spread(Duration::ZERO).take(4).map(|tick| since_start(tick.at)).collect();
    assert_eq!(at, [Duration::ZERO, MINUTE, MINUTE * 2, MINUTE * 3]);
}

#[test]
fn simultaneous_starts_are_spread_over_the_whole_period() {
    let first = |seed| {
        let clock = VirtualClock::new();
        let first = every_minute(&clock, Ratio::ZERO, seed).next().unwrap();
        since_start(first.at).as_secs_f64() / 60.0
    };
    assert_uniform((0..5_000).map(first).collect());
    let unseeded = || blocking::interval(MINUTE, Ratio::ZERO, VirtualClock::new()).next().unwrap().at;
    assert_ne!(unseeded(), unseeded(), "without a seed, each ticker draws its own");
}

#[test]
fn each_tick_draws_a_new_offset_from_its_grid_point() {
    let clock = VirtualClock::new();
    let width = MINUTE.mul_f64(0.2);
    let offsets: Vec<_> = (0..)
        .zip(every_minute(&clock, Ratio::percent(10), 3).spread(Duration::ZERO).take(5_000))
        .map(|(k, tick)| {
            let offset = since_start(tick.at).checked_sub(MINUTE * k).expect("no tick is before its grid point");
            assert!(offset <= width, "tick {k}: {offset:?}");
            offset.as_secs_f64() / width.as_secs_f64()
        })
        .collect();
    // Consecutive offsets are uncorrelated, too.
    let n = offsets.len() as f64;
    let lag: f64 = offsets.windows(2).map(|pair| (pair[0] - 0.5) * (pair[1] - 0.5) * 12.0).sum::<f64>() / n;
    assert!(lag.abs() < 5.0 / n.sqrt(), "{lag}");
    assert_uniform(offsets);
}

#[test]
fn slow_work_causes_no_drift() {
    let clock = VirtualClock::new();
    let mut last = Duration::ZERO;
    for tick in every_minute(&clock, Ratio::percent(5), 4).spread(Duration::ZERO).take(10_001) {
        clock.advance(SECOND * 7);
        assert_eq!(tick.missed, 0);
        last = since_start(tick.at);
    }
    assert!((MINUTE * 10_000..=MINUTE * 10_000 + MINUTE / 10).contains(&last), "{last:?}");
}

#[test]
fn ticks_keep_their_order_at_every_jitter() {
    for percent in [50, 70, 100, 400] {
        let clock = VirtualClock::new();
        let mut before = None;
        for (k, tick) in (0..).zip(every_minute(&clock, Ratio::percent(percent), 5).spread(Duration::ZERO).take(2_000))
        {
            let at = since_start(tick.at);
            assert!((MINUTE * k..=MINUTE * (k + 1)).contains(&at), "±{percent} %, tick {k}: {at:?}");
            assert!(before <= Some(at));
            before = Some(at);
        }
    }
}

#[test]
fn missed_ticks_are_skipped_and_counted_without_a_burst() {
    let clock = VirtualClock::new();
    let mut ticker = every_minute(&clock, Ratio::ZERO, 6).spread(Duration::ZERO);
    assert!(ticker.next().is_some());
    // The ticks of minutes 1, 2 and 3 pass.
    clock.advance(MINUTE * 3 + SECOND);
    let tick = ticker.next().unwrap();
    assert_eq!((since_start(tick.at), tick.missed, tick.number), (MINUTE * 4, 3, 2));
    let tick = ticker.next().unwrap();
    assert_eq!((since_start(tick.at), tick.missed, tick.number), (MINUTE * 5, 0, 3));
    // A tick due exactly now is not missed.
    clock.advance(MINUTE * 2);
    let tick = ticker.next().unwrap();
    assert_eq!((since_start(tick.at), tick.missed), (MINUTE * 7, 1));
}

#[test]
fn missed_ticks_are_counted_correctly_with_jitter() {
    let clock = VirtualClock::new();
    let (mut returned, mut missed) = (0, 0);
    let mut ticker = every_minute(&clock, Ratio::percent(50), 7).spread(Duration::ZERO);
    for k in 0..500_u32 {
        let called_at = clock.now();
        let tick = ticker.next().unwrap();
        assert!(tick.at >= called_at);
        returned += 1;
        missed += tick.missed;
        // Grid points are numbered from 0; each one was either returned or missed.
        let point = since_start(tick.at).as_nanos() / MINUTE.as_nanos();
        assert_eq!(u128::from(returned + missed), point + 1);
        clock.advance(SECOND * (k * 37 % 200));
    }
    assert!(missed > 100, "{missed}");
}

#[test]
fn a_reset_restarts_the_grid_one_period_from_now() {
    let clock = VirtualClock::new();
    let mut ticker = every_minute(&clock, Ratio::ZERO, 8).spread(Duration::ZERO);
    assert!(ticker.next().is_some());
    clock.advance(SECOND * 20);
    ticker.reset();
    let at: Vec<_> = ticker.take(2).map(|tick| since_start(tick.at)).collect();
    assert_eq!(at, [SECOND * 80, SECOND * 140]);
}

#[test]
fn extreme_periods_neither_hang_nor_panic() {
    let zero: Vec<_> = blocking::interval(Duration::ZERO, Ratio::ONE, ThreadSleep).take(100).collect();
    assert_eq!(zero.len(), 100);
    let clock = VirtualClock::new();
    let mut longest = blocking::interval(Duration::MAX, Ratio::ONE, clock).spread(Duration::MAX);
    for _ in 0..5 {
        assert!(longest.next().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn ticks_follow_the_grid_within_tokio_resolution() {
    let start = tokio::time::Instant::now();
    let mut ticker = interval(ms(100), Ratio::percent(20), Tokio).spread(Duration::ZERO);
    for k in 0..1_000 {
        let tick = ticker.tick().await.unwrap();
        let at = start.elapsed();
        assert!((ms(100) * k..=ms(100) * k + ms(41)).contains(&at), "tick {k}: {at:?}");
        assert_eq!((tick.number, tick.missed), (u64::from(k) + 1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn an_interval_resumes_the_same_tick_after_being_dropped() {
    let start = tokio::time::Instant::now();
    let mut ticker = interval(MINUTE, Ratio::ZERO, Tokio).spread(Duration::ZERO);
    assert!(ticker.tick().await.is_some());
    for _ in 0..5 {
        assert!(tokio::time::timeout(SECOND * 10, ticker.tick()).await.is_err());
    }
    assert_eq!(ticker.tick().await.map(|tick| (tick.number, tick.missed)), Some((2, 0)));
    assert_eq!(start.elapsed(), MINUTE);
}

#[tokio::test(start_paused = true)]
async fn a_late_tick_does_not_delay_later_ticks() {
    let start = tokio::time::Instant::now();
    let mut ticker = interval(MINUTE, Ratio::ZERO, Tokio).spread(Duration::ZERO);
    assert!(ticker.tick().await.is_some());
    assert!(tokio::time::timeout(SECOND, ticker.tick()).await.is_err());
    // The tick of minute 1 is pending; those of minutes 2 and 3 are missed.
    tokio::time::sleep_until(start + SECOND * 200).await;
    assert_eq!(ticker.tick().await.map(|tick| (tick.number, tick.missed)), Some((2, 0)));
    assert_eq!(start.elapsed(), SECOND * 200);
    assert_eq!(ticker.tick().await.map(|tick| (tick.number, tick.missed)), Some((3, 2)));
    assert_eq!(start.elapsed(), MINUTE * 4);
}

#[test]
fn a_reset_interval_does_not_repeat_its_times() {
    let clock = VirtualClock::new();
    let mut ticker = every_minute(&clock, Ratio::percent(50), 1).spread(Duration::ZERO);
    let mut times = || {
        let start = clock.now();
        let times: Vec<_> = ticker.by_ref().take(5).map(|tick| tick.at.saturating_since(start)).collect();
        ticker.reset();
        times
    };
    // The first tick of the first five is that of point 0, which a reset does not repeat.
    let (first, second) = (times(), times());
    assert!(first[1..].iter().zip(&second).all(|(first, second)| first != second), "{first:?}, {second:?}");
}
