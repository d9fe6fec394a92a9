use stagger::Ratio;
use stagger::budget::{BudgetError, Throttle};

/// `retryThrottling`: the allowance for the retries of all methods of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryThrottling {
    max_tokens: u32,
    token_ratio: Ratio,
}

impl RetryThrottling {
    /// So many tokens at most, and so much of one for a success. Of the ratio three decimals count; it may be above one.
    ///
    /// # Errors
    /// As [`Throttle::new`].
    pub fn new(max_tokens: u32, token_ratio: Ratio) -> Result<Self, BudgetError> {
        Throttle::new(max_tokens, token_ratio)?;
        Ok(Self { max_tokens, token_ratio: thousandths(token_ratio.as_millionths() / 1_000) })
    }

    /// What a budget does.
    #[must_use]
    pub fn from_budget(budget: &Throttle) -> Self {
        let held = budget.snapshot();
        Self { max_tokens: held.max_milli_tokens / 1_000, token_ratio: thousandths(held.milli_ratio) }
    }

    /// A budget that does this, with all of its tokens: one for all calls to the same server name.
    #[must_use]
    pub fn to_budget(self) -> Throttle {
        match Throttle::new(self.max_tokens, self.token_ratio) {
            Ok(throttle) => throttle,
            Err(_) => unreachable!("both numbers were checked"),
        }
    }

    /// How many tokens there are at most, and at the beginning. Range 1 to 1000.
    #[must_use]
    pub const fn max_tokens(self) -> u32 {
        self.max_tokens
    }

    /// What a success gives back, in tokens. Range 0.001 to 1000, in whole thousandths.
    #[must_use]
    pub const fn token_ratio(self) -> Ratio {
        self.token_ratio
    }
}

const fn thousandths(n: u32) -> Ratio {
    Ratio::millionths(n * 1_000)
}
