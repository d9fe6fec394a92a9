//! Ticks around a period.

use core::time::Duration;

use stagger::testing::VirtualClock;
use stagger::{Instant, Ratio, Seed, blocking, reconnect::interval, time::Clock as _, time::ThreadSleep, time::Tokio};

use super::super::support::{assert_uniform, ms};

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn on(clock: &VirtualClock, jitter: Ratio, seed: u64) -> blocking::Ticker<stagger::reconnect::Periodic, VirtualClock> {
    blocking::interval(MINUTE, jitter, clock.clone()).seed(Seed::new(seed))
}

fn since_start(at: Instant) -> Duration {
    at.saturating_since(Instant::ZERO)
}

#[test]
fn without_jitter_and_spread_it_is_a_plain_period_and_begins_at_once() {
    let clock = VirtualClock::new();
    let at: Vec<_> =
        on(&clock, Ratio::ZERO, 1).spread(Duration::ZERO).take(4).map(|tick| since_start(tick.at)).collect();
    assert_eq!(at, [Duration::ZERO, MINUTE, MINUTE * 2, MINUTE * 3]);
}

#[test]
fn a_fleet_that_starts_together_is_spread_over_the_whole_period() {
    let first = |seed| {
        let clock = VirtualClock::new();
        let first = on(&clock, Ratio::ZERO, seed).next().unwrap();
        since_start(first.at).as_secs_f64() / 60.0
    };
    assert_uniform((0..5_000).map(first).collect());
    let own = || blocking::interval(MINUTE, Ratio::ZERO, VirtualClock::new()).next().unwrap().at;
    assert_ne!(own(), own(), "nobody told a seed");
}

#[test]
fn each_tick_is_drawn_anew_around_its_point_of_the_grid() {
    let clock = VirtualClock::new();
    let width = MINUTE.mul_f64(0.2);
    let offsets: Vec<_> = (0..)
        .zip(on(&clock, Ratio::percent(10), 3).spread(Duration::ZERO).take(5_000))
        .map(|(k, tick)| {
            let offset = since_start(tick.at).checked_sub(MINUTE * k).expect("no tick before its point");
            assert!(offset <= width, "tick {k}: {offset:?}");
            offset.as_secs_f64() / width.as_secs_f64()
        })
        .collect();
    // Not even neighbours know of each other.
    let n = offsets.len() as f64;
    let lag: f64 = offsets.windows(2).map(|pair| (pair[0] - 0.5) * (pair[1] - 0.5) * 12.0).sum::<f64>() / n;
    assert!(lag.abs() < 5.0 / n.sqrt(), "{lag}");
    assert_uniform(offsets);
}

#[test]
fn there_is_no_drift_whatever_the_work_takes() {
    let clock = VirtualClock::new();
    let mut last = Duration::ZERO;
    for tick in on(&clock, Ratio::percent(5), 4).spread(Duration::ZERO).take(10_001) {
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
        for (k, tick) in (0..).zip(on(&clock, Ratio::percent(percent), 5).spread(Duration::ZERO).take(2_000)) {
            let at = since_start(tick.at);
            assert!((MINUTE * k..=MINUTE * (k + 1)).contains(&at), "±{percent} %, tick {k}: {at:?}");
            assert!(before <= Some(at));
            before = Some(at);
        }
    }
}

#[test]
fn missed_ticks_are_left_out_and_told_and_do_not_come_in_a_burst() {
    let clock = VirtualClock::new();
    let mut ticker = on(&clock, Ratio::ZERO, 6).spread(Duration::ZERO);
    assert!(ticker.next().is_some());
    // The ticks of minutes 1, 2 and 3 pass.
    clock.advance(MINUTE * 3 + SECOND);
    let tick = ticker.next().unwrap();
    assert_eq!((since_start(tick.at), tick.missed, tick.number), (MINUTE * 4, 3, 2));
    let tick = ticker.next().unwrap();
    assert_eq!((since_start(tick.at), tick.missed, tick.number), (MINUTE * 5, 0, 3));
    // To the point: that of the very moment has not passed.
    clock.advance(MINUTE * 2);
    let tick = ticker.next().unwrap();
    assert_eq!((since_start(tick.at), tick.missed), (MINUTE * 7, 1));
}

#[test]
fn missed_ticks_are_counted_right_under_jitter() {
    let clock = VirtualClock::new();
    let (mut given, mut missed) = (0, 0);
    let mut ticker = on(&clock, Ratio::percent(50), 7).spread(Duration::ZERO);
    for k in 0..500_u32 {
        let asked = clock.now();
        let tick = ticker.next().unwrap();
        assert!(tick.at >= asked);
        given += 1;
        missed += tick.missed;
        // Points are numbered from 0, and every one of them was given or missed.
        let point = since_start(tick.at).as_nanos() / MINUTE.as_nanos();
        assert_eq!(u128::from(given + missed), point + 1);
        clock.advance(SECOND * (k * 37 % 200));
    }
    assert!(missed > 100, "{missed}");
}

#[test]
fn a_reset_moves_the_grid_to_a_period_from_now() {
    let clock = VirtualClock::new();
    let mut ticker = on(&clock, Ratio::ZERO, 8).spread(Duration::ZERO);
    assert!(ticker.next().is_some());
    clock.advance(SECOND * 20);
    ticker.reset();
    let at: Vec<_> = ticker.take(2).map(|tick| since_start(tick.at)).collect();
    assert_eq!(at, [SECOND * 80, SECOND * 140]);
}

#[test]
fn senseless_lengths_neither_hang_nor_panic() {
    let zero: Vec<_> = blocking::interval(Duration::ZERO, Ratio::ONE, ThreadSleep).take(100).collect();
    assert_eq!(zero.len(), 100);
    let clock = VirtualClock::new();
    let mut longest = blocking::interval(Duration::MAX, Ratio::ONE, clock).spread(Duration::MAX);
    for _ in 0..5 {
        assert!(longest.next().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn on_tokios_paused_clock_it_keeps_the_grid_to_its_millisecond() {
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
async fn a_tick_of_an_interval_that_is_dropped_in_its_wait_is_the_same_tick_afterwards() {
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
async fn a_tick_that_is_taken_late_does_not_move_those_after_it() {
    let start = tokio::time::Instant::now();
    let mut ticker = interval(MINUTE, Ratio::ZERO, Tokio).spread(Duration::ZERO);
    assert!(ticker.tick().await.is_some());
    assert!(tokio::time::timeout(SECOND, ticker.tick()).await.is_err());
    // The tick of minute 1 waits to be taken; those of minutes 2 and 3 pass.
    tokio::time::sleep_until(start + SECOND * 200).await;
    assert_eq!(ticker.tick().await.map(|tick| (tick.number, tick.missed)), Some((2, 0)));
    assert_eq!(start.elapsed(), SECOND * 200);
    assert_eq!(ticker.tick().await.map(|tick| (tick.number, tick.missed)), Some((3, 2)));
    assert_eq!(start.elapsed(), MINUTE * 4);
}
