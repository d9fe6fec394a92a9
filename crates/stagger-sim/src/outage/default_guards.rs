use stagger_core::breaker::CircuitBreaker;
use stagger_core::budget::{SuccessRate, Throttle, Tokens, Window};
use stagger_core::{Ratio, Seed};

use super::ProcessGuards;

/// Guards with their default settings, as the linter and the advisor of `stagger-lint` try and recommend them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DefaultGuards {
    /// No guards.
    None,
    /// `Tokens::new()`: an allowance that successes refill.
    Tokens,
    /// `Window::new()`: a share of the recent calls.
    Window,
    /// `Throttle::new(10, Ratio::percent(10))`: the example of gRPC proposal A6.
    Throttle,
    /// `SuccessRate::new()`: retries only while most attempts succeed.
    SuccessRate,
    /// No budget, but `CircuitBreaker::new(seed)`.
    Breaker,
}

impl DefaultGuards {
    /// All guards, in the order in which they are tried: of those that do equally well, the first is recommended.
    pub const TRIED: [Self; 5] = [Self::Tokens, Self::Window, Self::Throttle, Self::SuccessRate, Self::Breaker];

    /// Returns the name that `stagger simulate outage --guards` and `stagger check --budget` take: `tokens`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tokens => "tokens",
            Self::Window => "window",
            Self::Throttle => "throttle",
            Self::SuccessRate => "success-rate",
            Self::Breaker => "breaker",
        }
    }

    /// Returns the method call that adds the guards to a retrier, as Rust code: `.budget(Tokens::new())`.
    #[must_use]
    pub const fn rust_code(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Tokens => ".budget(Tokens::new())",
            Self::Window => ".budget(Window::new())",
            Self::Throttle => ".budget(Throttle::new(10, Ratio::percent(10))?)",
            Self::SuccessRate => ".budget(SuccessRate::new())",
            Self::Breaker => ".breaker(CircuitBreaker::new(stagger::seed()))",
        }
    }

    /// Creates the guards of a process, with this seed for guards that use randomness.
    pub fn process(self, seed: Seed) -> ProcessGuards {
        let none = ProcessGuards::none();
        match self {
            Self::None => none,
            Self::Tokens => none.budget(Tokens::new()),
            Self::Window => none.budget(Window::new()),
            Self::Throttle => match Throttle::new(10, Ratio::percent(10)) {
                Ok(throttle) => none.budget(throttle),
                Err(_) => none,
            },
            Self::SuccessRate => none.budget(SuccessRate::new()),
            Self::Breaker => none.breaker(CircuitBreaker::new(seed)),
        }
    }
}
