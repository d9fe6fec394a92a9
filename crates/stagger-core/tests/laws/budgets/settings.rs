//! Settings common to several budgets.

use stagger_core::budget::{Adaptive, BudgetProblem, Concurrent, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger_core::{Ratio, Seed};

use super::problems;
use crate::laws::support::ms;

/// These must compile: every budget can be a `static`.
static _TOKENS: Tokens = Tokens::new();
static _WINDOW: Window = Window::new();
static _LIFETIME: Lifetime = Lifetime::new();
static _CONCURRENT: Concurrent = Concurrent::new();
static _SUCCESS_RATE: SuccessRate = SuccessRate::new();
static _ADAPTIVE: Adaptive = Adaptive::new(Seed::new(1));
static _THROTTLE: Throttle = match Throttle::new(10, Ratio::percent(10)) {
    Ok(throttle) => throttle,
    Err(_) => panic!("valid settings"),
};

#[test]
fn tokens_report_all_problems_with_a_fix() {
    let error = Tokens::builder().capacity(3).initial(4).refill(1, ms(0)).build().unwrap_err();
    let found: Vec<_> = error.problems().collect();
    assert_eq!(
        found,
        [BudgetProblem::InitialAboveCapacity, BudgetProblem::CostAboveCapacity, BudgetProblem::NoRefillTime]
    );
    assert_eq!(
        error.to_string(),
        "initial 4 is above capacity 3: lower initial or raise capacity; \
         cost 5 is above capacity 3, so that retry would always be rejected: lower the cost or raise capacity; \
         the refill period is 0s, so no retry would be rejected: use a longer period"
    );
    assert_eq!(problems(Tokens::builder().capacity(0).build()), [BudgetProblem::NoCapacity]);
    assert_eq!(problems(Tokens::builder().cost(0).build()), [BudgetProblem::NoCost]);
    assert!(Tokens::builder().capacity(5).initial(5).local_cost(0).build().is_ok());
    let largest = Tokens::builder().capacity(u32::MAX).cost(u32::MAX).reward(u32::MAX).refill(u32::MAX, ms(1));
    assert!(largest.build().is_ok());
}
