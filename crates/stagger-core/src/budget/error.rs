use core::fmt;

/// Everything that is wrong with the settings of a budget, with the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetError {
    problems: u32,
}

/// One thing that is wrong with the settings of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum BudgetProblem {
    /// A bucket that holds no token never lends.
    NoCapacity,
    /// More tokens at the beginning than the bucket holds.
    InitialAboveCapacity,
    /// A retry costs more than the bucket holds.
    CostAboveCapacity,
    /// Every retry is free.
    NoCost,
    /// Tokens come in within no time.
    NoRefillTime,
    /// gRPC's `maxTokens` is outside `1..=1000`.
    MaxTokens,
    /// gRPC's `tokenRatio` is below a thousandth, or above 1000.
    TokenRatio,
    /// A share is above 1.
    RatioAboveOne,
    /// A share of 1 where it would allow everything.
    RatioOfOne,
    /// A share of 0 where it would allow everything.
    RatioOfZero,
    /// The window is shorter than a second, or longer than the longest.
    WindowLength,
    /// The multiplier of accepted requests is below 1, or above 1000.
    Multiplier,
    /// The number of attempts that are looked back on is outside `1..=64`.
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

impl BudgetProblem {
    const fn sentence(self) -> &'static str {
        match self {
            Self::NoCapacity => "capacity is 0, so nothing would ever be lent: use at least the cost of a retry",
            Self::InitialAboveCapacity => "initial is above capacity: lower initial or raise capacity",
            Self::CostAboveCapacity => {
                "a cost is above capacity, so it could never be paid: lower it or raise capacity"
            }
            Self::NoCost => "every cost is 0, so nothing would ever be refused: use 1 or more, or no budget",
            Self::NoRefillTime => "the refill takes no time, so nothing would ever be refused: name a length of time",
            Self::MaxTokens => "max_tokens is outside 1 to 1000: gRPC allows no other",
            Self::TokenRatio => "token_ratio is below 0.001 or above 1000, and digits after the third do not count",
            Self::RatioAboveOne => "a share is above 100%: use at most 1",
            Self::RatioOfOne => "a share of 100% of all attempts would never be reached: use less than 1",
            Self::RatioOfZero => "a share of 0% succeeds always, so nothing would ever be refused: use 0.9",
            Self::WindowLength => "the window is shorter than 1s or longer than this budget's longest: change it",
            Self::Multiplier => "the multiplier is below 1 or above 1000: use 2, or 1.1 to refuse early",
            Self::Attempts => "the number of attempts to look back on is outside 1 to 64: use 50",
        }
    }
}

impl BudgetError {
    /// The problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = BudgetProblem> + '_ {
        ALL.into_iter().filter(|&problem| self.problems & (1 << problem as u8) != 0)
    }

    /// The problems that were found, if any.
    pub(super) const fn check<const N: usize>(found: [(BudgetProblem, bool); N]) -> Result<(), Self> {
        let mut problems = 0;
        let mut at = 0;
        while at < N {
            if found[at].1 {
                problems |= 1 << found[at].0 as u8;
            }
            at += 1;
        }
        if problems == 0 { Ok(()) } else { Err(Self { problems }) }
    }
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            f.write_str(problem.sentence())?;
        }
        Ok(())
    }
}

impl core::error::Error for BudgetError {}
