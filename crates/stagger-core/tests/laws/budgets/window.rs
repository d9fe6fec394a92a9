//! [`Window`].

use core::time::Duration;

use stagger_core::budget::{BudgetProblem, Window, WindowBuilder};
use stagger_core::{Budget, FailureKind, Instant, Outcome, Ratio};

use super::{drain, faults};
use crate::laws::support::{at, ms, secs};

const BARE: WindowBuilder = Window::builder().min_per_second(0);

fn calls(window: &Window, calls: u32, now: Instant) {
    for _ in 0..calls {
        let _ = window.on_first_attempt(&now);
    }
}

fn lends(window: &Window, now: Instant) -> bool {
    window.try_acquire(FailureKind::Transient, &now).is_some()
}

#[test]
fn bd_01_nothing_is_lent_without_calls_and_without_a_minimum() {
    let window = BARE.ttl(secs(1)).ratio(Ratio::ONE).build().unwrap();
    assert!(!lends(&window, at(secs(1))));
}

#[test]
fn bd_03_calls_of_different_slots_pay_together_until_they_have_passed() {
    let window = BARE.ttl(secs(1)).ratio(Ratio::percent(50)).build().unwrap();
    calls(&window, 2, at(ms(0)));
    assert!(lends(&window, at(ms(901))));
    calls(&window, 1, at(ms(2902)));
    calls(&window, 1, at(ms(3203)));
    calls(&window, 1, at(ms(4004)));
    assert!(lends(&window, at(ms(4004))), "the second and the third pay");
    assert!(!lends(&window, at(ms(4004))), "the first has passed");
}

#[test]
fn bd_05_a_cold_window_has_a_hundred_retries() {
    let window = Window::default();
    assert_eq!((drain(&window, at(secs(3))).len(), window.available()), (100, Some(0)));
}

#[test]
fn bd_07_the_fifth_call_pays_for_a_retry_of_a_fifth() {
    let (window, now) = (BARE.build().unwrap(), at(secs(1)));
    calls(&window, 4, now);
    assert!(!lends(&window, now));
    calls(&window, 1, now);
    assert!(lends(&window, now));
    assert!(!lends(&window, now));
}

#[test]
fn bd_09_every_share_is_what_it_says() {
    for percent in (0..=100).step_by(5).chain([1, 33, 99]) {
        let window = BARE.ratio(Ratio::percent(percent)).build().unwrap();
        calls(&window, 1_000, at(secs(1)));
        assert_eq!(drain(&window, at(secs(1))).len(), percent as usize * 10, "{percent} %");
    }
}

#[test]
fn bd_11_no_share_and_no_minimum_never_lend() {
    let window = BARE.ratio(Ratio::ZERO).build().unwrap();
    calls(&window, 1_000, at(secs(1)));
    assert!(!lends(&window, at(secs(1))));
}

#[test]
fn bd_17_failing_calls_without_a_minimum_cause_at_most_their_share() {
    for (n, percent) in [(1, 20), (4, 20), (5, 20), (7, 75), (999, 33), (1_000, 100)] {
        let (window, mut lent) = (BARE.ratio(Ratio::percent(percent)).build().unwrap(), 0);
        for call in 0..n {
            let now = at(ms(u64::from(call)));
            calls(&window, 1, now);
            lent += (0..3).filter(|_| lends(&window, now)).count();
        }
        assert_eq!(lent as u32, n * percent / 100, "{n} calls, {percent} %");
    }
}

#[test]
fn the_share_of_the_calls_and_the_minimum_make_wholes_together() {
    let window = Window::builder().ttl(ms(1_500)).min_per_second(1).ratio(Ratio::percent(25)).build().unwrap();
    assert_eq!(drain(&window, at(secs(1))).len(), 1, "one and a half");
    calls(&window, 2, at(secs(1)));
    assert_eq!(drain(&window, at(secs(1))).len(), 1, "two");
}

/// A window that takes the time of its last touch for the beginning of a slot forgets early when touched often.
#[test]
fn touching_a_window_does_not_shorten_it() {
    for step in [ms(7), ms(50), ms(99), ms(101), ms(250)] {
        let window = BARE.ttl(secs(1)).ratio(Ratio::ONE).build().unwrap();
        let start = at(ms(1_000));
        calls(&window, 1, start);
        let mut now = start;
        let lived = loop {
            now = now.saturating_add(step);
            if window.snapshot(now).calls == 0 {
                break now.saturating_since(start);
            }
            let untouched = window.try_acquire(FailureKind::Transient, &now).map(|loan| window.release(loan));
            assert!(untouched.is_some());
        };
        assert!(lived >= ms(900) && lived < ms(1_000) + step, "{lived:?} with a touch every {step:?}");
    }
}

#[test]
fn idle_time_of_any_length_passes_at_once() {
    let (window, month) = (Window::default(), secs(30 * 86_400));
    drop(drain(&window, at(secs(1))));
    for idle in [month, month * 12 * 100, Duration::MAX] {
        assert_eq!(drain(&window, at(idle)).len(), 100, "{idle:?}");
    }
    assert_eq!(drain(&window, Instant::from_nanos(u64::MAX)).len(), 100);
}

#[test]
fn a_retry_counts_as_long_as_a_call() {
    let window = Window::builder().ttl(secs(1)).min_per_second(1).ratio(Ratio::ZERO).build().unwrap();
    assert!(lends(&window, at(ms(50))));
    assert!(!lends(&window, at(ms(999))));
    assert!(lends(&window, at(ms(1_000))));
}

#[test]
fn what_was_never_used_comes_back_to_the_slot_it_came_from() {
    let window = BARE.ttl(secs(1)).ratio(Ratio::ONE).build().unwrap();
    calls(&window, 1, at(ms(100)));
    let loan = window.try_acquire(FailureKind::Transient, &at(ms(150))).unwrap();
    assert!(!lends(&window, at(ms(850))));
    window.release(loan);
    let loan = window.try_acquire(FailureKind::Transient, &at(ms(850))).expect("it came back");
    calls(&window, 1, at(secs(5)));
    assert!(lends(&window, at(secs(5))));
    window.release(loan);
    assert_eq!(window.snapshot(at(secs(5))).retries, 1, "what has passed is not given back again");
}

#[test]
fn a_retry_that_was_made_stays_paid_whatever_came_of_it() {
    let window = Window::default();
    for outcome in [Outcome::Success, Outcome::TRANSIENT, Outcome::Cancelled] {
        let loan = window.try_acquire(FailureKind::Transient, &at(secs(1))).unwrap();
        window.record(loan, &outcome, &at(secs(1)));
    }
    assert_eq!(window.snapshot(at(secs(1))).retries, 3);
}

#[test]
fn a_clock_that_lags_behind_spends_in_the_newest_slot() {
    let window = Window::builder().ttl(secs(1)).min_per_second(1).ratio(Ratio::ZERO).build().unwrap();
    assert!(lends(&window, at(ms(1_550))));
    for lagging in [ms(0), ms(551), ms(1_449), ms(1_500)] {
        assert!(!lends(&window, at(lagging)), "{lagging:?}");
    }
}

#[test]
fn a_ttl_or_a_share_out_of_range_is_refused_together() {
    for ttl in [ms(999), ms(60_001), Duration::ZERO, Duration::MAX] {
        let built = Window::builder().ttl(ttl).ratio(Ratio::percent(101)).build();
        assert_eq!(faults(built), [BudgetProblem::RatioAboveOne, BudgetProblem::WindowLength], "{ttl:?}");
    }
    assert!(Window::builder().ttl(secs(1)).build().is_ok() && Window::builder().ttl(secs(60)).build().is_ok());
}
