//! When the blocking ticker ticks.

use core::time::Duration;

use stagger::reconnect::Tick;
use stagger::testing::{Recorder, VirtualClock};
use stagger::{Cancel, Instant, Policy, Retrier, Seed, blocking, policy};

use super::super::support::{PanickingTimer, ms, nanos};

const SECOND: Duration = Duration::from_secs(1);
const SEED: Seed = Seed::new(11);

fn numbers(ticks: impl Iterator<Item = Tick>) -> Vec<u64> {
    ticks.map(|tick| tick.number).collect()
}

#[test]
fn the_first_tick_is_immediate_and_the_rest_follow_the_policy() {
    const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(6));
    let clock = VirtualClock::new();
    let ticks: Vec<_> = blocking::Ticker::with_timer(clock.clone(), POLICY).seed(SEED).collect();
    let delays: Vec<_> = POLICY.delays(SEED).collect();
    assert_eq!((clock.sleeps(), ticks.len()), (delays.clone(), 6));
    let mut at = Instant::ZERO;
    for (tick, delay) in ticks.iter().zip([Duration::ZERO].into_iter().chain(delays)) {
        at = at.saturating_add(delay);
        assert_eq!((tick.at, tick.missed), (at, 0));
    }
    assert_eq!(numbers(ticks.into_iter()), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_ticker_ends_with_its_schedule_after_at_least_one_tick() {
    const STOP: Policy = policy!(stop());
    const ONCE: Policy = policy!(exponential(ms(1), ms(2)).max_attempts(1));
    for policy in [&STOP, &ONCE] {
        let mut ticker = blocking::Ticker::with_timer(VirtualClock::new(), policy);
        assert_eq!(numbers(ticker.by_ref()), [1]);
        assert_eq!((ticker.next(), ticker.ticks()), (None, 1));
        ticker.reset();
        assert_eq!(ticker.next(), None);
    }
}

#[test]
fn max_elapsed_includes_the_work_and_the_next_delay() {
    let ticks = |limit: Duration| {
        let policy = Policy::constant(SECOND).jitter(stagger::Jitter::None).unlimited_attempts().max_elapsed(limit);
        let (policy, clock) = (policy.build().unwrap(), VirtualClock::new());
        blocking::Ticker::with_timer(clock.clone(), policy).inspect(|_| clock.advance(SECOND * 2)).count()
    };
    // Ticks at 0, 3 and 6 s.
    assert_eq!([nanos(5_999_999_999), SECOND * 6, SECOND * 8].map(ticks), [2, 3, 3]);
    assert_eq!(ticks(SECOND * 9), 4);
}

#[test]
fn a_delay_starts_when_the_next_tick_is_requested() {
    const POLICY: Policy = policy!(constant(secs(1)).jitter(Jitter::None).max_attempts(4));
    let clock = VirtualClock::new();
    let at: Vec<_> = blocking::Ticker::with_timer(clock.clone(), POLICY)
        .map(|tick| {
            clock.advance(SECOND * 10);
            tick.at.saturating_since(Instant::ZERO)
        })
        .collect();
    assert_eq!(at, [Duration::ZERO, SECOND * 11, SECOND * 22, SECOND * 33]);
}

#[test]
fn a_spread_comes_before_the_first_tick() {
    const POLICY: Policy = policy!(constant(secs(1)).spread(secs(100)).max_attempts(2));
    let clock = VirtualClock::new();
    let first = blocking::Ticker::with_timer(clock.clone(), POLICY).seed(SEED).next().unwrap();
    assert_eq!(first.at, Instant::ZERO.saturating_add(POLICY.first_spread(SEED)));
    assert!(first.at > Instant::ZERO);
}

#[test]
fn a_reset_restarts_the_schedule_and_limits_with_new_jitter() {
    const POLICY: Policy = policy!(exponential(secs(1), secs(1000)).max_attempts(4).max_elapsed(mins(10)));
    let clock = VirtualClock::new();
    let mut ticker = blocking::Ticker::with_timer(clock.clone(), POLICY).seed(SEED);
    assert!(ticker.nth(2).is_some());
    clock.advance(SECOND * 590);
    ticker.reset();
    assert_eq!(numbers(ticker.by_ref()), [4, 5, 6]);
    let sleeps = clock.sleeps();
    for (sleep, ceiling) in sleeps[2..].iter().zip([1, 2, 4]) {
        assert!(*sleep <= SECOND * ceiling, "{sleeps:?}");
    }
    assert_ne!(sleeps[..2], sleeps[2..4]);
}

#[test]
fn a_reset_before_the_first_tick_changes_nothing() {
    const POLICY: Policy = policy!(constant(secs(1)).max_attempts(2));
    let clock = VirtualClock::new();
    let mut ticker = blocking::Ticker::with_timer(clock.clone(), POLICY);
    ticker.reset();
    assert_eq!(ticker.next().map(|tick| tick.at), Some(Instant::ZERO));
}

#[test]
fn a_stopped_ticker_stays_stopped() {
    const POLICY: Policy = policy!(constant(secs(1)).unlimited_attempts());
    let mut ticker = blocking::Ticker::with_timer(VirtualClock::new(), POLICY);
    assert!(ticker.next().is_some());
    ticker.stop();
    ticker.stop();
    ticker.reset();
    assert_eq!((ticker.next(), ticker.next()), (None, None));
}

#[test]
fn a_cancel_handle_ends_a_ticker_during_a_wait() {
    const HOURLY: Policy = policy!(constant(secs(3600)).unlimited_attempts());
    let cancel = Cancel::new();
    let (handle, (sender, receiver)) = (cancel.clone(), std::sync::mpsc::channel());
    let thread = std::thread::spawn(move || {
        let ticker = blocking::Ticker::new(HOURLY);
        ticker.cancelled_by(&handle).inspect(|_| sender.send(()).unwrap()).count()
    });
    receiver.recv().unwrap();
    cancel.cancel();
    assert_eq!(thread.join().unwrap(), 1);
}

#[test]
fn the_first_tick_is_returned_even_if_cancelled_before() {
    const POLICY: Policy = policy!(zero().unlimited_attempts());
    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(blocking::Ticker::new(POLICY).cancelled_by(&cancel).count(), 1);
}

#[test]
fn a_ticker_without_delays_does_not_use_its_timer() {
    const ZERO: Policy = policy!(zero().max_attempts(100));
    assert_eq!(blocking::Ticker::with_timer(PanickingTimer, ZERO).count(), 100);
}

#[test]
fn a_ticker_recovers_from_a_panic_of_its_timer() {
    const POLICY: Policy = policy!(constant(secs(1)).unlimited_attempts());
    let mut ticker = blocking::Ticker::with_timer(PanickingTimer, POLICY);
    assert!(ticker.next().is_some());
    assert!(std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| ticker.next())).is_err());
    assert_eq!(ticker.next().map(|tick| tick.number), Some(2));
}

#[test]
fn ticks_continue_inside_an_attempt_of_a_call() {
    const POLICY: Policy = policy!(constant(ms(1)).max_attempts(5));
    let ticks = || Ok::<_, ()>(blocking::Ticker::with_timer(VirtualClock::new(), POLICY).count());
    assert_eq!(blocking::retry(&POLICY, ticks).run(), Ok(5));
}

#[test]
fn listeners_receive_the_time_since_the_first_tick() {
    const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));
    let recorder = Recorder::new();
    let retrier = Retrier::new(POLICY).on_event(recorder.listener());
    assert_eq!(blocking::Ticker::with_timer(VirtualClock::new(), retrier).count(), 3);
    let elapsed: Vec<_> = recorder.events().iter().map(|event| event.elapsed).collect();
    assert_eq!(elapsed, [ms(0), ms(10), ms(20)]);
}
