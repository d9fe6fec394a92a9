use core::str::FromStr;

use stagger_core::breaker::CircuitBreaker;
use stagger_core::budget::{Adaptive, Concurrent, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger_core::{Ratio, Seed};
use stagger_sim::outage::ProcessGuards;

use crate::storm::parse;

/// Guards of a client process: a budget, a circuit breaker, or both, each with its default settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guards {
    text: String,
    budget: Option<Budget>,
    breaker: Option<Breaker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Budget {
    Tokens,
    Window,
    Lifetime,
    Throttle,
    Concurrent,
    Adaptive,
    SuccessRate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Breaker;

#[derive(Clone, Copy, Debug)]
enum Keyword {
    None,
    Budget(Budget),
    Breaker,
}

const KEYWORDS: [(&str, Keyword); 9] = [
    ("none", Keyword::None),
    ("tokens", Keyword::Budget(Budget::Tokens)),
    ("window", Keyword::Budget(Budget::Window)),
    ("lifetime", Keyword::Budget(Budget::Lifetime)),
    ("throttle", Keyword::Budget(Budget::Throttle)),
    ("concurrent", Keyword::Budget(Budget::Concurrent)),
    ("adaptive", Keyword::Budget(Budget::Adaptive)),
    ("success-rate", Keyword::Budget(Budget::SuccessRate)),
    ("breaker", Keyword::Breaker),
];

impl Guards {
    /// Returns the guards as the user wrote them.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Creates a process with new guards of this kind.
    pub(super) fn process(&self, seed: Seed) -> ProcessGuards {
        let process = match self.budget {
            None => ProcessGuards::none(),
            Some(Budget::Tokens) => ProcessGuards::none().budget(Tokens::new()),
            Some(Budget::Window) => ProcessGuards::none().budget(Window::new()),
            Some(Budget::Lifetime) => ProcessGuards::none().budget(Lifetime::new()),
            Some(Budget::Throttle) => ProcessGuards::none().budget(grpc_throttle()),
            Some(Budget::Concurrent) => ProcessGuards::none().budget(Concurrent::new()),
            Some(Budget::Adaptive) => ProcessGuards::none().budget(Adaptive::new(seed)),
            Some(Budget::SuccessRate) => ProcessGuards::none().budget(SuccessRate::new()),
        };
        match self.breaker {
            None => process,
            Some(Breaker) => process.breaker(CircuitBreaker::new(seed)),
        }
    }
}

/// Returns the throttle of the example in gRPC proposal A6: ten tokens, and a tenth of a token back per success.
fn grpc_throttle() -> Throttle {
    const {
        match Throttle::new(10, Ratio::percent(10)) {
            Ok(throttle) => throttle,
            Err(_) => panic!("ten tokens are within the range of a throttle"),
        }
    }
}

impl FromStr for Guards {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut guards = Self { text: text.trim().to_owned(), budget: None, breaker: None };
        for keyword in text.split('+') {
            match parse::keyword(keyword, &KEYWORDS)? {
                Keyword::None => {}
                Keyword::Budget(_) if guards.budget.is_some() => {
                    return Err(format!("`{text}` names two budgets; keep one of them"));
                }
                Keyword::Budget(budget) => guards.budget = Some(budget),
                Keyword::Breaker => guards.breaker = Some(Breaker),
            }
        }
        Ok(guards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_and_a_breaker_combine_but_two_budgets_do_not() {
        let both: Guards = "tokens+breaker".parse().unwrap();
        assert_eq!((both.budget, both.breaker), (Some(Budget::Tokens), Some(Breaker)));
        assert!("tokens+window".parse::<Guards>().is_err_and(|error| error.contains("keep one of them")));
        assert!("tokns".parse::<Guards>().is_err_and(|error| error.contains("none, tokens, window")));
    }

    #[test]
    fn every_guard_keyword_is_accepted() {
        for (keyword, _) in KEYWORDS {
            let process = format!("{:?}", keyword.parse::<Guards>().unwrap().process(Seed::new(1)));
            assert_eq!(process.contains("Some"), keyword != "none", "{keyword}: {process}");
        }
    }
}
