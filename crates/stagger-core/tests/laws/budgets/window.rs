//! The [`Window`] budget.

use core::time::Duration;

use stagger_core::budget::{BudgetProblem, Window, WindowBuilder};
use stagger_core::guard::End;
use stagger_core::{FailureKind, Guard, Instant, Outcome, Ratio};

use super::{drain, problems};
use crate::laws::support::{Start, at, ms, secs};

const WITHOUT_MINIMUM: WindowBuilder = Window::builder().min_per_second(0);

fn calls(window: &Window, calls: u32, now: Instant) {
    for _ in 0..calls {
        let _ = window.start(&now);
    }
}

fn grants(window: &Window, now: Instant) -> bool {
    window.reserve(FailureKind::Transient, &now).is_some()
}

#[test]
fn bd_01_no_retry_without_calls_and_without_a_minimum() {
    let window = WITHOUT_MINIMUM.ttl(secs(1)).ratio(Ratio::ONE).build().unwrap();
    assert!(!grants(&window, at(secs(1))));
}

#[test]
fn bd_03_calls_of_all_slots_count_until_they_expire() {
    let window = WITHOUT_MINIMUM.ttl(secs(1)).ratio(Ratio::percent(50)).build().unwrap();
    calls(&window, 2, at(ms(0)));
    assert!(grants(&window, at(ms(901))));
    calls(&window, 1, at(ms(2902)));
    calls(&window, 1, at(ms(3203)));
    calls(&window, 1, at(ms(4004)));
    assert!(grants(&window, at(ms(4004))), "the second and third calls count");
    assert!(!grants(&window, at(ms(4004))), "the first call has expired");
}

#[test]
fn bd_05_a_new_window_grants_a_hundred_retries() {
    let window = Window::default();
    assert_eq!((drain(&window, at(secs(3))).len(), window.available()), (100, Some(0)));
}

#[test]
fn bd_07_at_20_percent_the_fifth_call_earns_a_retry() {
    let (window, now) = (WITHOUT_MINIMUM.build().unwrap(), at(secs(1)));
    calls(&window, 4, now);
    assert!(!grants(&window, now));
    calls(&window, 1, now);
    assert!(grants(&window, now));
    assert!(!grants(&window, now));
}

#[test]
fn bd_09_every_ratio_is_granted_exactly() {
    for percent in (0..=100).step_by(5).chain([1, 33, 99]) {
        let window = WITHOUT_MINIMUM.ratio(Ratio::percent(percent)).build().unwrap();
        calls(&window, 1_000, at(secs(1)));
        assert_eq!(drain(&window, at(secs(1))).len(), percent as usize * 10, "{percent} %");
    }
}

#[test]
fn bd_11_a_ratio_of_zero_without_a_minimum_never_grants() {
    let window = WITHOUT_MINIMUM.ratio(Ratio::ZERO).build().unwrap();
    calls(&window, 1_000, at(secs(1)));
    assert!(!grants(&window, at(secs(1))));
}

#[test]
fn bd_17_without_a_minimum_retries_are_at_most_the_share() {
    for (n, percent) in [(1, 20), (4, 20), (5, 20), (7, 75), (999, 33), (1_000, 100)] {
        let (window, mut granted) = (WITHOUT_MINIMUM.ratio(Ratio::percent(percent)).build().unwrap(), 0);
        for call in 0..n {
            let now = at(ms(u64::from(call)));
            calls(&window, 1, now);
            granted += (0..3).filter(|_| grants(&window, now)).count();
        }
        assert_eq!(granted as u32, n * percent / 100, "{n} calls, {percent} %");
    }
}

#[test]
fn fractions_of_ratio_and_minimum_add_up() {
    let window = Window::builder().ttl(ms(1_500)).min_per_second(1).ratio(Ratio::percent(25)).build().unwrap();
    assert_eq!(drain(&window, at(secs(1))).len(), 1, "1.5 rounds down");
    calls(&window, 2, at(secs(1)));
    assert_eq!(drain(&window, at(secs(1))).len(), 1, "1.5 + 0.5");
}

/// A window that took its last use for the start of a slot would expire early when used often.
#[test]
fn frequent_use_does_not_shorten_a_window() {
    for step in [ms(7), ms(50), ms(99), ms(101), ms(250)] {
        let window = WITHOUT_MINIMUM.ttl(secs(1)).ratio(Ratio::ONE).build().unwrap();
        let start = at(ms(1_000));
        calls(&window, 1, start);
        let mut now = start;
        let kept_for = loop {
            now = now.saturating_add(step);
            if window.snapshot(now).calls == 0 {
                break now.saturating_since(start);
            }
            let released =
                window.reserve(FailureKind::Transient, &now).map(|permit| window.settle(permit, End::NeverMade, &now));
            assert!(released.is_some());
        };
        assert!(kept_for >= ms(900) && kept_for < ms(1_000) + step, "kept for {kept_for:?} when used every {step:?}");
    }
}

#[test]
fn any_idle_time_resets_the_window() {
    let (window, month) = (Window::default(), secs(30 * 86_400));
    drop(drain(&window, at(secs(1))));
    for idle in [month, month * 12 * 100, Duration::MAX] {
        assert_eq!(drain(&window, at(idle)).len(), 100, "{idle:?}");
    }
    assert_eq!(drain(&window, Instant::from_nanos(u64::MAX)).len(), 100);
}

#[test]
fn a_retry_expires_after_the_ttl() {
    let window = Window::builder().ttl(secs(1)).min_per_second(1).ratio(Ratio::ZERO).build().unwrap();
    assert!(grants(&window, at(ms(50))));
    assert!(!grants(&window, at(ms(999))));
    assert!(grants(&window, at(ms(1_000))));
}

#[test]
fn a_released_permit_returns_to_its_slot() {
    let window = WITHOUT_MINIMUM.ttl(secs(1)).ratio(Ratio::ONE).build().unwrap();
    calls(&window, 1, at(ms(100)));
    let permit = window.reserve(FailureKind::Transient, &at(ms(150))).unwrap();
    assert!(!grants(&window, at(ms(850))));
    window.settle(permit, End::NeverMade, &at(ms(950)));
    let permit = window.reserve(FailureKind::Transient, &at(ms(850))).expect("the permit was released");
    calls(&window, 1, at(secs(5)));
    assert!(grants(&window, at(secs(5))));
    window.settle(permit, End::NeverMade, &at(ms(950)));
    assert_eq!(window.snapshot(at(secs(5))).retries, 1, "an expired permit is not refunded");
}

#[test]
fn a_recorded_retry_stays_charged_for_every_outcome() {
    let window = Window::default();
    for outcome in [Outcome::Success, Outcome::TRANSIENT, Outcome::Cancelled] {
        let permit = window.reserve(FailureKind::Transient, &at(secs(1))).unwrap();
        window.settle(permit, End::Made(&outcome), &at(secs(1)));
    }
    assert_eq!(window.snapshot(at(secs(1))).retries, 3);
}

#[test]
fn available_is_that_of_the_last_request_even_if_no_call_came_since() {
    let window = Window::builder().ttl(secs(1)).min_per_second(1).ratio(Ratio::ONE).build().unwrap();
    calls(&window, 1, at(ms(0)));
    assert_eq!(window.available(), Some(2));
    assert!(grants(&window, at(secs(2))));
    assert_eq!(window.available(), Some(0), "the call has expired");
}

#[test]
fn a_lagging_clock_spends_in_the_newest_slot() {
    let window = Window::builder().ttl(secs(1)).min_per_second(1).ratio(Ratio::ZERO).build().unwrap();
    assert!(grants(&window, at(ms(1_550))));
    for lagging in [ms(0), ms(551), ms(1_449), ms(1_500)] {
        assert!(!grants(&window, at(lagging)), "{lagging:?}");
    }
}

#[test]
fn ttl_and_ratio_out_of_range_are_both_reported() {
    for ttl in [ms(999), ms(60_001), Duration::ZERO, Duration::MAX] {
        let built = Window::builder().ttl(ttl).ratio(Ratio::percent(101)).build();
        assert_eq!(problems(built), [BudgetProblem::RatioAboveOne, BudgetProblem::WindowLength], "{ttl:?}");
    }
    assert!(Window::builder().ttl(secs(1)).build().is_ok() && Window::builder().ttl(secs(60)).build().is_ok());
}
