use stagger::Ratio;
use stagger::budget::{BudgetError, Throttle};

/// `retryThrottling`: the retry allowance that all methods of a server share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryThrottling {
    max_tokens: u32,
    token_ratio: Ratio,
}

impl RetryThrottling {
    /// Creates the setting from the maximum number of tokens and the tokens that a success returns. Only three decimals of the
    /// ratio count; it may exceed one.
    ///
    /// # Errors
    /// The same as [`Throttle::new`].
    pub fn new(max_tokens: u32, token_ratio: Ratio) -> Result<Self, BudgetError> {
        Throttle::new(max_tokens, token_ratio)?;
        Ok(Self { max_tokens, token_ratio: thousandths(token_ratio.as_millionths() / 1_000) })
    }

    /// Creates the setting that corresponds to a budget.
    #[must_use]
    pub fn from_budget(budget: &Throttle) -> Self {
        let snapshot = budget.snapshot();
        Self { max_tokens: snapshot.max_milli_tokens / 1_000, token_ratio: thousandths(snapshot.milli_ratio) }
    }

    /// Creates a budget with this setting and all of its tokens. Share one among all calls to the same server name.
    #[must_use]
    pub fn to_budget(self) -> Throttle {
        match Throttle::new(self.max_tokens, self.token_ratio) {
            Ok(throttle) => throttle,
            Err(_) => unreachable!("`new` and `from_budget` have validated both numbers"),
        }
    }

    /// Returns the maximum number of tokens, which is also the initial number. Range: 1 to 1000.
    #[must_use]
    pub const fn max_tokens(self) -> u32 {
        self.max_tokens
    }

    /// Returns the tokens that a success returns. Range: 0.001 to 1000, in whole thousandths.
    #[must_use]
    pub const fn token_ratio(self) -> Ratio {
        self.token_ratio
    }
}

const fn thousandths(n: u32) -> Ratio {
    Ratio::millionths(n * 1_000)
}
