//! Retry budgets.

use core::time::Duration;

use ::loom::sync::Arc;
use stagger_core::budget::{Adaptive, Concurrent, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger_core::guard::{End, Permit};
use stagger_core::{FailureKind, Guard, Instant, Outcome, Ratio, Seed};

use super::support::{NOW, Start, model, together};

const SECOND: Duration = Duration::from_secs(1);

fn acquire(budget: &dyn Guard, now: Instant) -> u64 {
    u64::from(budget.reserve(FailureKind::Transient, &now).is_some())
}

fn fail_and_acquire(budget: &dyn Guard) -> u64 {
    budget.settle(Permit::NONE, End::Made(&Outcome::TRANSIENT), &NOW);
    acquire(budget, NOW)
}

fn acquire_and_release(budget: &dyn Guard) -> u64 {
    if let Some(permit) = budget.reserve(FailureKind::Transient, &NOW) {
        budget.settle(permit, End::NeverMade, &NOW);
    }
    0
}

#[test]
fn loom_the_last_token_is_granted_once() {
    model(|| {
        let tokens = Arc::new(Tokens::builder().capacity(2).cost(1).reward(0).build().unwrap());
        let acquire: fn(&Tokens) -> u64 = |tokens| acquire(tokens, NOW);
        assert_eq!(together(&tokens, &[acquire, acquire, acquire]), 2);
    });
}

#[test]
fn loom_concurrent_reward_and_release_are_not_lost() {
    model(|| {
        let tokens = Arc::new(Tokens::builder().capacity(10).initial(2).cost(2).reward(1).build().unwrap());
        let succeed: fn(&Tokens) -> u64 = |tokens| {
            tokens.settle(Permit::NONE, End::Made(&Outcome::Success), &NOW);
            0
        };
        together(&tokens, &[succeed, |tokens| acquire_and_release(tokens)]);
        assert_eq!(tokens.snapshot().tokens, 3);
    });
}

#[test]
fn loom_a_refill_is_added_once() {
    model(|| {
        let tokens = Tokens::builder().capacity(10).initial(0).cost(1).reward(0).refill(1, SECOND).build().unwrap();
        assert_eq!(acquire(&tokens, NOW), 0);
        let tokens = Arc::new(tokens);
        let later: fn(&Tokens) -> u64 = |tokens| acquire(tokens, NOW.saturating_add(SECOND));
        let granted = together(&tokens, &[later, later]);
        // A request between the two steps of another thread's refill is rejected; the token is available afterwards.
        assert_eq!(granted + tokens.snapshot().tokens, 1);
    });
}

#[test]
fn loom_a_throttle_counts_every_failure_before_it_grants() {
    model(|| {
        let throttle = Arc::new(Throttle::new(4, Ratio::ONE).unwrap());
        let fail: fn(&Throttle) -> u64 = |throttle| fail_and_acquire(throttle);
        let granted = together(&throttle, &[fail, fail, fail]);
        assert!(granted <= 1, "{granted}");
        assert_eq!(throttle.snapshot().milli_tokens, 1_000);
    });
}

#[test]
fn loom_reconfiguring_a_throttle_is_atomic() {
    model(|| {
        let throttle = Arc::new(Throttle::new(4, Ratio::ONE).unwrap());
        let change: fn(&Throttle) -> u64 = |throttle| {
            throttle.reconfigure(8, Ratio::percent(50)).unwrap();
            0
        };
        together(&throttle, &[change, |throttle| fail_and_acquire(throttle)]);
        let seen = throttle.snapshot();
        assert_eq!((seen.max_milli_tokens, seen.milli_ratio), (8_000, 500));
        assert!([6_000, 7_000].contains(&seen.milli_tokens), "{seen:?}");
    });
}

#[test]
fn loom_a_success_rate_counts_failures_before_it_grants() {
    model(|| {
        let budget = Arc::new(SuccessRate::with(Ratio::percent(50), 2).unwrap());
        let fail: fn(&SuccessRate) -> u64 = |budget| fail_and_acquire(budget);
        let granted = together(&budget, &[fail, fail]);
        assert!(granted <= 1, "{granted}");
        assert_eq!(budget.snapshot().succeeded, 0);
    });
}

#[test]
fn loom_a_lifetime_grants_its_last_retry_once() {
    model(|| {
        let budget = Arc::new(Lifetime::with(Ratio::percent(50), 0).unwrap());
        let _ = budget.start(&NOW);
        let call: fn(&Lifetime) -> u64 = |budget| {
            let _ = budget.start(&NOW);
            acquire(budget, NOW)
        };
        let granted = together(&budget, &[call, |budget| acquire(budget, NOW), |budget| acquire(budget, NOW)]);
        assert!((1..=2).contains(&granted), "{granted}");
        assert_eq!(granted + budget.available().unwrap(), 2);
    });
}

#[test]
fn loom_concurrent_calls_share_the_floor_and_leak_nothing() {
    model(|| {
        let budget = Arc::new(Concurrent::with(Ratio::ZERO, 1).unwrap());
        let call: fn(&Concurrent) -> u64 = |budget| {
            let first = budget.start(&NOW);
            budget.settle(first, End::Made(&Outcome::TRANSIENT), &NOW);
            let Some(permit) = budget.reserve(FailureKind::Transient, &NOW) else { return 0 };
            assert_eq!(budget.snapshot().retries, 1);
            budget.settle(permit, End::Made(&Outcome::Cancelled), &NOW);
            1
        };
        assert!(together(&budget, &[call, call]) >= 1);
        assert_eq!((budget.snapshot().firsts, budget.snapshot().retries), (0, 0));
    });
}

/// Creates a window that grants one retry per two calls. Under loom, a slot lasts half a second.
fn window() -> Window {
    Window::builder().ttl(SECOND).ratio(Ratio::percent(50)).min_per_second(0).build().unwrap()
}

const NEXT_SLOT: Instant = Instant::from_nanos(7_500_000_000);

#[test]
fn loom_a_window_grants_its_last_retry_once() {
    model(|| {
        let window = Arc::new(window());
        let _ = (window.start(&NOW), window.start(&NOW));
        let acquire: fn(&Window) -> u64 = |window| acquire(window, NOW);
        assert_eq!(together(&window, &[acquire, acquire]), 1);
    });
}

#[test]
fn loom_a_window_grants_its_last_retry_once_across_slots() {
    model(|| {
        let window = Arc::new(window());
        let _ = (window.start(&NOW), window.start(&NEXT_SLOT));
        let before: fn(&Window) -> u64 = |window| acquire(window, NOW);
        let after: fn(&Window) -> u64 = |window| acquire(window, NEXT_SLOT);
        let granted = together(&window, &[before, after]);
        assert_eq!(window.snapshot(NEXT_SLOT).retries, granted);
        assert_eq!(granted, 1);
    });
}

#[test]
fn loom_three_threads_do_not_exceed_a_window() {
    model(|| {
        let window = Arc::new(window());
        for _ in 0..4 {
            let _ = window.start(&NOW);
        }
        let before: fn(&Window) -> u64 = |window| acquire(window, NOW);
        let after: fn(&Window) -> u64 = |window| acquire(window, NEXT_SLOT);
        assert_eq!(together(&window, &[before, after, before]), 2);
    });
}

#[test]
fn loom_a_retry_released_to_a_window_is_available_again() {
    model(|| {
        let window = Arc::new(window());
        let _ = (window.start(&NOW), window.start(&NOW));
        let granted = together(&window, &[|window| acquire_and_release(window), |window| acquire(window, NEXT_SLOT)]);
        assert_eq!(window.snapshot(NEXT_SLOT).retries, granted);
        assert_eq!(granted + window.available().unwrap(), 1);
    });
}

#[test]
fn loom_calls_are_counted_while_a_slot_starts() {
    model(|| {
        let window = Arc::new(window());
        let _ = window.start(&NOW);
        let call: fn(&Window) -> u64 = |window| {
            let _ = window.start(&NOW.saturating_add(SECOND));
            0
        };
        together(&window, &[call, call]);
        assert_eq!(window.snapshot(NOW.saturating_add(SECOND)).calls, 2);
    });
}

#[test]
fn loom_an_adaptive_budget_uncounts_cancelled_requests() {
    model(|| {
        let budget = Arc::new(Adaptive::new(Seed::new(1)));
        let cancelled: fn(&Adaptive) -> u64 = |budget| {
            let permit = budget.start(&NOW);
            budget.settle(permit, End::Made(&Outcome::Cancelled), &NOW);
            0
        };
        let accepted: fn(&Adaptive) -> u64 = |budget| {
            let permit = budget.start(&NOW);
            budget.settle(permit, End::Made(&Outcome::Success), &NOW);
            0
        };
        together(&budget, &[cancelled, accepted]);
        let seen = budget.snapshot(NOW);
        assert_eq!((seen.requests, seen.accepts), (1, 1));
    });
}
