use core::fmt;

use crate::numbers::message::{Message, Value, words, write_all};
use crate::numbers::ratio::Ratio;

/// Every problem in the settings of a budget, with the values and how to fix them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetError {
    problems: u32,
    /// For each problem the offending value, in its unit.
    values: [u64; BudgetProblem::ALL.len()],
}

words! {
    /// One problem in the settings of a budget.
    #[repr(u8)]
    pub enum BudgetProblem {
        /// The capacity is 0, so every retry would be rejected.
        NoCapacity = "capacity is 0, so every retry would be rejected: use at least the cost of a retry",
        /// The bucket begins with more tokens than it holds.
        InitialAboveCapacity = "initial {} is above capacity {}: lower initial or raise capacity",
        /// A retry costs more than the bucket holds.
        CostAboveCapacity =
            "cost {} is above capacity {}, so that retry would always be rejected: lower the cost or raise capacity",
        /// Every retry is free.
        NoCost = "every cost is 0, so no retry would be rejected: use 1 or more, or leave out the budget",
        /// The refill period is 0.
        NoRefillTime = "the refill period is 0s, so no retry would be rejected: use a longer period",
        /// gRPC's `maxTokens` is outside `1..=1000`.
        MaxTokens = "max_tokens {} is outside 1 to 1000, the range of gRPC: change it",
        /// gRPC's `tokenRatio` is below 0.001 or above 1000.
        TokenRatio =
            "token_ratio {} is outside 0.001 to 1000, the range of gRPC, which ignores further decimals: change it",
        /// A share is above 1.
        RatioAboveOne = "share {} is above 100%: use at most 1",
        /// The share is 1, which would allow every retry.
        RatioOfOne = "share 100% of all attempts would never be reached, so no retry would be rejected: use less",
        /// The share is 0, which would allow every retry.
        RatioOfZero = "share 0% is always reached, so no retry would be rejected: use more, like 0.9",
        /// The window is shorter than a second, or longer than the budget allows.
        WindowLength = "window {} is outside the range of this budget, which begins at 1s: change it",
        /// The multiplier of accepted requests is below 1, or above 1000.
        Multiplier = "multiplier {} is outside 1 to 1000: use 2, or 1.1 to reject retries earlier",
        /// The number of recent attempts is outside `1..=64`.
        Attempts = "{} recent attempts are outside the range of 1 to 64: use 50",
    }
    const ALL;
    /// Returns the sentence about the problem, in which each `{}` stands for a value.
    const fn sentence;
}

impl BudgetError {
    /// Returns the problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = BudgetProblem> + '_ {
        BudgetProblem::ALL.iter().copied().filter(|&problem| self.problems & (1 << problem as u8) != 0)
    }

    /// Collects the problems that are present. Each comes with the value that its message names: tokens and shares in
    /// millionths, lengths of time in nanoseconds.
    pub(super) const fn of<const N: usize>(found: [(BudgetProblem, bool, u64); N]) -> Self {
        let mut error = Self { problems: 0, values: [0; BudgetProblem::ALL.len()] };
        let mut at = 0;
        while at < N {
            let (problem, is_present, value) = found[at];
            error.problems |= (is_present as u32) << problem as u8;
            error.values[problem as usize] = value;
            at += 1;
        }
        error
    }

    pub(super) const fn is_none(&self) -> bool {
        self.problems == 0
    }

    fn message(&self, problem: BudgetProblem) -> Message<192> {
        let value = self.values[problem as usize];
        let capacity = self.values[BudgetProblem::NoCapacity as usize];
        let value = match problem {
            BudgetProblem::MaxTokens | BudgetProblem::Attempts => Value::Count(value),
            BudgetProblem::RatioAboveOne => Value::Share(Ratio::millionths(u32::try_from(value).unwrap_or(u32::MAX))),
            BudgetProblem::WindowLength => Value::Length(value),
            _ => Value::Millionths(value),
        };
        Message::new().sentence(problem.sentence(), &[value, Value::Millionths(capacity)])
    }
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_all(f, self.problems().map(|problem| self.message(problem)))
    }
}

impl core::error::Error for BudgetError {}
