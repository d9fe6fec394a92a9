use core::fmt;

use crate::numbers::message::Message;
use crate::numbers::ratio::Ratio;

/// Every problem in the settings of a budget, with the values and how to fix them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetError {
    problems: u32,
    /// For each problem the offending value, in its unit.
    values: [u64; ALL.len()],
}

/// One problem in the settings of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum BudgetProblem {
    /// The capacity is 0, so every retry would be rejected.
    NoCapacity,
    /// The bucket begins with more tokens than it holds.
    InitialAboveCapacity,
    /// A retry costs more than the bucket holds.
    CostAboveCapacity,
    /// Every retry is free.
    NoCost,
    /// The refill period is 0.
    NoRefillTime,
    /// gRPC's `maxTokens` is outside `1..=1000`.
    MaxTokens,
    /// gRPC's `tokenRatio` is below 0.001 or above 1000.
    TokenRatio,
    /// A share is above 1.
    RatioAboveOne,
    /// The share is 1, which would allow every retry.
    RatioOfOne,
    /// The share is 0, which would allow every retry.
    RatioOfZero,
    /// The window is shorter than a second, or longer than the budget allows.
    WindowLength,
    /// The multiplier of accepted requests is below 1, or above 1000.
    Multiplier,
    /// The number of recent attempts is outside `1..=64`.
    Attempts,
}

const ALL: [BudgetProblem; 13] = [
    BudgetProblem::NoCapacity,
    BudgetProblem::InitialAboveCapacity,
    BudgetProblem::CostAboveCapacity,
    BudgetProblem::NoCost,
    BudgetProblem::NoRefillTime,
    BudgetProblem::MaxTokens,
    BudgetProblem::TokenRatio,
    BudgetProblem::RatioAboveOne,
    BudgetProblem::RatioOfOne,
    BudgetProblem::RatioOfZero,
    BudgetProblem::WindowLength,
    BudgetProblem::Multiplier,
    BudgetProblem::Attempts,
];

impl BudgetError {
    /// Returns the problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = BudgetProblem> + '_ {
        ALL.into_iter().filter(|&problem| self.problems & (1 << problem as u8) != 0)
    }

    /// Collects the problems that are present. Each comes with the value that its message names: tokens and shares in
    /// millionths, lengths of time in nanoseconds.
    pub(super) const fn check<const N: usize>(found: [(BudgetProblem, bool, u64); N]) -> Result<(), Self> {
        let mut error = Self { problems: 0, values: [0; ALL.len()] };
        let mut at = 0;
        while at < N {
            let (problem, is_present, value) = found[at];
            if is_present {
                error.problems |= 1 << problem as u8;
            }
            error.values[problem as usize] = value;
            at += 1;
        }
        if error.problems == 0 { Ok(()) } else { Err(error) }
    }

    fn sentence(&self, problem: BudgetProblem, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |problem: BudgetProblem| self.values[problem as usize];
        let value = of(problem);
        let share = Ratio::millionths(u32::try_from(value).unwrap_or(u32::MAX));
        match problem {
            BudgetProblem::NoCapacity => {
                f.write_str("capacity is 0, so every retry would be rejected: use at least the cost of a retry")
            }
            BudgetProblem::InitialAboveCapacity => write!(
                f,
                "initial {} is above capacity {}: lower initial or raise capacity",
                Millionths(value),
                Millionths(of(BudgetProblem::NoCapacity)),
            ),
            BudgetProblem::CostAboveCapacity => write!(
                f,
                "cost {} is above capacity {}, so that retry would always be rejected: lower the cost or raise capacity",
                Millionths(value),
                Millionths(of(BudgetProblem::NoCapacity)),
            ),
            BudgetProblem::NoCost => {
                f.write_str("every cost is 0, so no retry would be rejected: use 1 or more, or leave out the budget")
            }
            BudgetProblem::NoRefillTime => {
                f.write_str("the refill period is 0s, so no retry would be rejected: use a longer period")
            }
            BudgetProblem::MaxTokens => {
                write!(f, "max_tokens {value} is outside 1 to 1000, the range of gRPC: change it")
            }
            BudgetProblem::TokenRatio => write!(
                f,
                "token_ratio {} is outside 0.001 to 1000, the range of gRPC, which ignores further decimals: change it",
                Millionths(value),
            ),
            BudgetProblem::RatioAboveOne => write!(f, "share {share} is above 100%: use at most 1"),
            BudgetProblem::RatioOfOne => f.write_str(
                "share 100% of all attempts would never be reached, so no retry would be rejected: use less",
            ),
            BudgetProblem::RatioOfZero => {
                f.write_str("share 0% is always reached, so no retry would be rejected: use more, like 0.9")
            }
            BudgetProblem::WindowLength => {
                let window = Message::<64>::new().duration(value);
                write!(
                    f,
                    "window {} is outside the range of this budget, which begins at 1s: change it",
                    window.as_str()
                )
            }
            BudgetProblem::Multiplier => write!(
                f,
                "multiplier {} is outside 1 to 1000: use 2, or 1.1 to reject retries earlier",
                Millionths(value),
            ),
            BudgetProblem::Attempts => {
                write!(f, "{value} recent attempts are outside the range of 1 to 64: use 50")
            }
        }
    }
}

/// A number of millionths, printed as a decimal: `1.5`.
struct Millionths(u64);

impl fmt::Display for Millionths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut part, mut digits) = (self.0 / 1_000_000, self.0 % 1_000_000, 6);
        if part == 0 {
            return write!(f, "{whole}");
        }
        while part % 10 == 0 {
            part /= 10;
            digits -= 1;
        }
        write!(f, "{whole}.{part:0digits$}")
    }
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            self.sentence(problem, f)?;
        }
        Ok(())
    }
}

impl core::error::Error for BudgetError {}
