//! The budgets.

use core::time::Duration;

use ::loom::sync::Arc;
use stagger_core::budget::{Adaptive, Concurrent, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger_core::guard::BudgetPermit;
use stagger_core::{Budget, FailureKind, Instant, Outcome, Ratio, Seed};

use super::support::{NOW, model, together};

const SECOND: Duration = Duration::from_secs(1);

fn ask(budget: &dyn Budget, now: Instant) -> u64 {
    u64::from(budget.try_acquire(FailureKind::Transient, &now).is_some())
}

fn fail_and_ask(budget: &dyn Budget) -> u64 {
    budget.record(BudgetPermit::NONE, &Outcome::TRANSIENT, &NOW);
    ask(budget, NOW)
}

fn lend_and_give_back(budget: &dyn Budget) -> u64 {
    if let Some(loan) = budget.try_acquire(FailureKind::Transient, &NOW) {
        budget.release(loan);
    }
    0
}

#[test]
fn loom_the_last_token_is_lent_once() {
    model(|| {
        let tokens = Arc::new(Tokens::builder().capacity(2).cost(1).reward(0).build().unwrap());
        let ask: fn(&Tokens) -> u64 = |tokens| ask(tokens, NOW);
        assert_eq!(together(&tokens, &[ask, ask, ask]), 2);
    });
}

#[test]
fn loom_a_reward_and_what_is_given_back_are_not_lost() {
    model(|| {
        let tokens = Arc::new(Tokens::builder().capacity(10).initial(2).cost(2).reward(1).build().unwrap());
        let succeed: fn(&Tokens) -> u64 = |tokens| {
            tokens.record(BudgetPermit::NONE, &Outcome::Success, &NOW);
            0
        };
        together(&tokens, &[succeed, |tokens| lend_and_give_back(tokens)]);
        assert_eq!(tokens.snapshot().tokens, 3);
    });
}

#[test]
fn loom_a_refill_comes_once() {
    model(|| {
        let tokens = Tokens::builder().capacity(10).initial(0).cost(1).reward(0).refill(1, SECOND).build().unwrap();
        assert_eq!(ask(&tokens, NOW), 0);
        let tokens = Arc::new(tokens);
        let later: fn(&Tokens) -> u64 = |tokens| ask(tokens, NOW.saturating_add(SECOND));
        let lent = together(&tokens, &[later, later]);
        // Whoever asks between the two steps of the other's refill is refused; the token is there afterwards.
        assert_eq!(lent + tokens.snapshot().tokens, 1);
    });
}

#[test]
fn loom_a_throttle_counts_every_failure_before_it_lends() {
    model(|| {
        let throttle = Arc::new(Throttle::new(4, Ratio::ONE).unwrap());
        let fail: fn(&Throttle) -> u64 = |throttle| fail_and_ask(throttle);
        let lent = together(&throttle, &[fail, fail, fail]);
        assert!(lent <= 1, "{lent}");
        assert_eq!(throttle.snapshot().milli_tokens, 1_000);
    });
}

#[test]
fn loom_a_new_configuration_of_a_throttle_comes_whole() {
    model(|| {
        let throttle = Arc::new(Throttle::new(4, Ratio::ONE).unwrap());
        let change: fn(&Throttle) -> u64 = |throttle| {
            throttle.reconfigure(8, Ratio::percent(50)).unwrap();
            0
        };
        together(&throttle, &[change, |throttle| fail_and_ask(throttle)]);
        let seen = throttle.snapshot();
        assert_eq!((seen.max_milli_tokens, seen.milli_ratio), (8_000, 500));
        assert!([6_000, 7_000].contains(&seen.milli_tokens), "{seen:?}");
    });
}

#[test]
fn loom_a_success_rate_counts_every_failure_before_it_lends() {
    model(|| {
        let budget = Arc::new(SuccessRate::with(Ratio::percent(50), 2).unwrap());
        let fail: fn(&SuccessRate) -> u64 = |budget| fail_and_ask(budget);
        let lent = together(&budget, &[fail, fail]);
        assert!(lent <= 1, "{lent}");
        assert_eq!(budget.snapshot().succeeded, 0);
    });
}

#[test]
fn loom_a_lifetime_lends_its_last_retry_once() {
    model(|| {
        let budget = Arc::new(Lifetime::with(Ratio::percent(50), 0).unwrap());
        let _ = budget.on_first_attempt(&NOW);
        let call: fn(&Lifetime) -> u64 = |budget| {
            let _ = budget.on_first_attempt(&NOW);
            ask(budget, NOW)
        };
        let lent = together(&budget, &[call, |budget| ask(budget, NOW), |budget| ask(budget, NOW)]);
        assert!((1..=2).contains(&lent), "{lent}");
        assert_eq!(lent + budget.available().unwrap(), 2);
    });
}

#[test]
fn loom_concurrent_calls_share_the_floor_and_leave_nothing() {
    model(|| {
        let budget = Arc::new(Concurrent::with(Ratio::ZERO, 1).unwrap());
        let call: fn(&Concurrent) -> u64 = |budget| {
            let first = budget.on_first_attempt(&NOW);
            budget.record(first, &Outcome::TRANSIENT, &NOW);
            let Some(loan) = budget.try_acquire(FailureKind::Transient, &NOW) else { return 0 };
            assert_eq!(budget.snapshot().retries, 1);
            budget.record(loan, &Outcome::Cancelled, &NOW);
            1
        };
        assert!(together(&budget, &[call, call]) >= 1);
        assert_eq!((budget.snapshot().firsts, budget.snapshot().retries), (0, 0));
    });
}

/// One retry for two calls; a slot lasts half a second here.
fn window() -> Window {
    Window::builder().ttl(SECOND).ratio(Ratio::percent(50)).min_per_second(0).build().unwrap()
}

const NEXT_SLOT: Instant = Instant::from_nanos(7_500_000_000);

#[test]
fn loom_a_window_lends_its_last_retry_once() {
    model(|| {
        let window = Arc::new(window());
        let _ = (window.on_first_attempt(&NOW), window.on_first_attempt(&NOW));
        let ask: fn(&Window) -> u64 = |window| ask(window, NOW);
        assert_eq!(together(&window, &[ask, ask]), 1);
    });
}

#[test]
fn loom_a_window_lends_its_last_retry_once_across_slots() {
    model(|| {
        let window = Arc::new(window());
        let _ = (window.on_first_attempt(&NOW), window.on_first_attempt(&NEXT_SLOT));
        let before: fn(&Window) -> u64 = |window| ask(window, NOW);
        let after: fn(&Window) -> u64 = |window| ask(window, NEXT_SLOT);
        let lent = together(&window, &[before, after]);
        assert_eq!(window.snapshot(NEXT_SLOT).retries, lent);
        assert_eq!(lent, 1);
    });
}

#[test]
fn loom_three_threads_do_not_overspend_a_window() {
    model(|| {
        let window = Arc::new(window());
        for _ in 0..4 {
            let _ = window.on_first_attempt(&NOW);
        }
        let before: fn(&Window) -> u64 = |window| ask(window, NOW);
        let after: fn(&Window) -> u64 = |window| ask(window, NEXT_SLOT);
        assert_eq!(together(&window, &[before, after, before]), 2);
    });
}

#[test]
fn loom_what_a_window_gets_back_is_there_again() {
    model(|| {
        let window = Arc::new(window());
        let _ = (window.on_first_attempt(&NOW), window.on_first_attempt(&NOW));
        let lent = together(&window, &[|window| lend_and_give_back(window), |window| ask(window, NEXT_SLOT)]);
        assert_eq!(window.snapshot(NEXT_SLOT).retries, lent);
        assert_eq!(lent + window.available().unwrap(), 1);
    });
}

#[test]
fn loom_calls_are_counted_while_a_slot_of_a_window_begins() {
    model(|| {
        let window = Arc::new(window());
        let _ = window.on_first_attempt(&NOW);
        let call: fn(&Window) -> u64 = |window| {
            let _ = window.on_first_attempt(&NOW.saturating_add(SECOND));
            0
        };
        together(&window, &[call, call]);
        assert_eq!(window.snapshot(NOW.saturating_add(SECOND)).calls, 2);
    });
}

#[test]
fn loom_an_adaptive_budget_takes_back_what_was_cancelled() {
    model(|| {
        let budget = Arc::new(Adaptive::new(Seed::new(1)));
        let cancelled: fn(&Adaptive) -> u64 = |budget| {
            let loan = budget.on_first_attempt(&NOW);
            budget.record(loan, &Outcome::Cancelled, &NOW);
            0
        };
        let accepted: fn(&Adaptive) -> u64 = |budget| {
            let loan = budget.on_first_attempt(&NOW);
            budget.record(loan, &Outcome::Success, &NOW);
            0
        };
        together(&budget, &[cancelled, accepted]);
        let seen = budget.snapshot(NOW);
        assert_eq!((seen.requests, seen.accepts), (1, 1));
    });
}
