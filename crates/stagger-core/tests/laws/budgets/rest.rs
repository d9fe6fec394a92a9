//! Which guards can be replaced by new ones without granting more: [`Guard::is_at_rest`] and [`Guard::fresh`].

use stagger_core::breaker::{CircuitBreaker, Window as BreakerWindow};
use stagger_core::budget::{
    Adaptive, Concurrent, Controlled, Lifetime, RetryControl, SuccessRate, Throttle, Tokens, Window,
};
use stagger_core::guard::{End, Permit};
use stagger_core::{FailureKind, Guard, Instant, Outcome, Ratio, Seed};

use crate::laws::support::{RecordingGuard, Start, at, ms, secs};

const START: Instant = Instant::ZERO;

/// Fails one call with one retry, if the budget grants it. The retry is made and fails as well.
fn fail(budget: &dyn Guard, now: Instant) {
    let first = budget.start(&now);
    budget.settle(first, End::Made(&Outcome::TRANSIENT), &now);
    if let Some(retry) = budget.reserve(FailureKind::Transient, &now) {
        budget.settle(retry, End::Made(&Outcome::TRANSIENT), &now);
    }
}

/// A spent budget is not at rest, and a new one of the same settings is.
#[track_caller]
fn rests_until_it_is_used<B: Guard>(budget: &B) {
    assert!(budget.is_at_rest(&START), "{budget:?}");
    let new = budget.available();
    fail(budget, START);
    assert!(!budget.is_at_rest(&START), "{budget:?}");
    let fresh = budget.fresh().unwrap();
    assert!(fresh.is_at_rest(&START), "{fresh:?}");
    assert_eq!(fresh.available(), new, "{fresh:?}");
}

#[test]
fn a_budget_rests_until_a_retry_is_charged_and_a_fresh_one_rests() {
    rests_until_it_is_used(&Tokens::builder().capacity(30).cost(3).build().unwrap());
    rests_until_it_is_used(&Tokens::AWS.initial(100).build().unwrap());
    rests_until_it_is_used(&Throttle::new(10, Ratio::percent(10)).unwrap());
    rests_until_it_is_used(&SuccessRate::with(Ratio::percent(50), 20).unwrap());
    rests_until_it_is_used(&Lifetime::with(Ratio::percent(20), 7).unwrap());
    rests_until_it_is_used(&Window::builder().ratio(Ratio::percent(50)).min_per_second(1).build().unwrap());
    rests_until_it_is_used(&Adaptive::builder(Seed::new(1)).min_requests(1).build().unwrap());
}

#[test]
fn a_concurrent_budget_rests_while_no_call_is_active() {
    let budget = Concurrent::with(Ratio::percent(50), 2).unwrap();
    assert!(budget.is_at_rest(&START));
    let first = budget.start(&START);
    assert!(!budget.is_at_rest(&START));
    budget.settle(first, End::Made(&Outcome::TRANSIENT), &START);
    let retry = budget.reserve(FailureKind::Transient, &START).unwrap();
    assert!(!budget.is_at_rest(&START));
    assert_eq!(budget.fresh().unwrap().available(), Some(2));
    budget.settle(retry, End::NeverMade, &START);
    assert!(budget.is_at_rest(&START));
}

#[test]
fn time_or_success_brings_a_budget_back_to_rest() {
    let refilled = Tokens::builder().capacity(10).cost(5).refill(1, secs(1)).build().unwrap();
    fail(&refilled, START);
    assert!(!refilled.is_at_rest(&at(secs(4))));
    assert!(refilled.is_at_rest(&at(secs(5))));

    let rewarded = Tokens::builder().capacity(10).cost(5).reward(5).build().unwrap();
    fail(&rewarded, START);
    rewarded.settle(Permit::NONE, End::Made(&Outcome::Success), &START);
    assert!(rewarded.is_at_rest(&START));

    let window = Window::builder().ttl(secs(10)).build().unwrap();
    fail(&window, START);
    assert!(!window.is_at_rest(&at(secs(9))));
    assert!(window.is_at_rest(&at(secs(10))));
}

/// A new budget would have its bootstrap again.
#[test]
fn a_lifetime_budget_rests_again_once_it_has_earned_its_bootstrap() {
    let budget = Lifetime::with(Ratio::percent(50), 10).unwrap();
    fail(&budget, START);
    for calls in 1..11 {
        assert!(!budget.is_at_rest(&START), "{calls} calls");
        let _ = budget.start(&START);
    }
    // Eleven calls have earned eleven retries, of which one was made.
    assert_eq!(budget.available(), Some(10));
    assert!(budget.is_at_rest(&START));
}

#[test]
fn a_controlled_budget_rests_with_its_budget_and_a_custom_one_never_does() {
    let (tokens, control) = (Tokens::new(), RetryControl::new());
    let controlled = Controlled::new(&tokens, &control);
    assert!(controlled.is_at_rest(&START));
    fail(&controlled, START);
    assert!(!controlled.is_at_rest(&START));
    let custom = RecordingGuard::budget();
    assert!(!custom.is_at_rest(&START) && custom.fresh().is_none());
}

#[test]
fn budgets_that_count_calls_need_every_call_and_those_that_start_full_do_not() {
    let window = Window::builder().build().unwrap();
    let rewarded = Tokens::builder().initial(499).build().unwrap();
    let control = RetryControl::new();
    let counting: [&dyn Guard; 7] = [
        &window,
        &Lifetime::new(),
        &Concurrent::new(),
        &Adaptive::new(Seed::new(1)),
        &rewarded,
        &Controlled::new(&rewarded, &control),
        &RecordingGuard::budget(),
    ];
    for budget in counting {
        assert!(budget.needs_every_call(), "{budget:?}");
    }
    let refilled = Tokens::builder().refill(1, secs(1)).build().unwrap();
    let full_bucket = Tokens::new();
    let full: [&dyn Guard; 7] = [
        &Tokens::new(),
        &Tokens::AWS.build().unwrap(),
        &Tokens::builder().initial(500).build().unwrap(),
        &refilled,
        &Throttle::new(10, Ratio::percent(10)).unwrap(),
        &SuccessRate::with(Ratio::percent(50), 64).unwrap(),
        &Controlled::new(&full_bucket, &control),
    ];
    for budget in full {
        assert!(!budget.needs_every_call(), "{budget:?}");
        is_unchanged_by_calls_that_do_not_fail(budget);
    }
}

/// What [`Guard::needs_every_call`] promises by returning false.
#[track_caller]
fn is_unchanged_by_calls_that_do_not_fail(budget: &dyn Guard) {
    for health in ["at rest", "after failures"] {
        let is_at_rest = budget.is_at_rest(&START);
        let before = format!("{budget:?}");
        assert_eq!(budget.start(&START), Permit::NONE, "{health}: {before}");
        budget.settle(Permit::NONE, End::Made(&Outcome::Cancelled), &START);
        if is_at_rest {
            budget.settle(Permit::NONE, End::Made(&Outcome::Success), &START);
            budget.settle(Permit::NONE, End::Made(&Outcome::Permanent), &START);
        }
        assert_eq!(format!("{budget:?}"), before, "{health}");
        fail(budget, START);
    }
}

fn record(breaker: &CircuitBreaker, outcome: Outcome, now: Instant) {
    let permit = breaker.start(&now);
    breaker.settle(permit, End::Made(&outcome), &now);
}

#[test]
fn a_breaker_rests_while_closed_without_a_failure() {
    let ratio = CircuitBreaker::builder(Seed::new(1)).failure_ratio(Ratio::percent(50)).min_calls(3);
    let breakers = [
        CircuitBreaker::builder(Seed::new(1)).consecutive(3).build(),
        ratio.window(BreakerWindow::Calls(10)).build(),
        ratio.window(BreakerWindow::Time(secs(10))).build(),
    ];
    for breaker in breakers.map(Result::unwrap) {
        record(&breaker, Outcome::Success, START);
        assert!(breaker.is_at_rest(&START), "{breaker:?}");
        record(&breaker, Outcome::TRANSIENT, START);
        assert!(!breaker.is_at_rest(&START), "{breaker:?}");
        // The fresh one opens after as many failures, for as long.
        let fresh = breaker.fresh().unwrap();
        assert!(fresh.is_at_rest(&START));
        for _ in 0..3 {
            record(&fresh, Outcome::TRANSIENT, START);
        }
        record(&breaker, Outcome::TRANSIENT, START);
        if breaker.retry_in(&START).is_zero() {
            record(&breaker, Outcome::TRANSIENT, START);
        }
        assert_eq!(fresh.retry_in(&START), breaker.retry_in(&START));
        assert!(!fresh.retry_in(&START).is_zero() && !fresh.is_at_rest(&START));
    }
}

/// The next open time of a breaker that has just closed is longer than that of a new one.
#[test]
fn a_breaker_that_was_open_rests_once_its_next_open_time_is_a_first_one() {
    let breaker = CircuitBreaker::builder(Seed::new(1)).consecutive(1).build().unwrap();
    record(&breaker, Outcome::TRANSIENT, START);
    let open_for = breaker.retry_in(&START);
    assert!(!breaker.is_at_rest(&at(secs(3_600))), "open until a probe closes it");
    let closed = at(open_for);
    record(&breaker, Outcome::Success, closed);
    assert!(!breaker.is_at_rest(&closed));
    assert!(!breaker.is_at_rest(&closed.saturating_add(open_for - ms(1))));
    assert!(breaker.is_at_rest(&closed.saturating_add(open_for)));
}

#[test]
fn a_breaker_under_a_command_does_not_rest() {
    let breaker = CircuitBreaker::new(Seed::new(1));
    assert!(breaker.is_at_rest(&START));
    breaker.force_closed(&START);
    assert!(!breaker.is_at_rest(&START));
}
