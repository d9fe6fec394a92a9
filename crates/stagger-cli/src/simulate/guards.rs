use core::str::FromStr;

use stagger_core::breaker::CircuitBreaker;
use stagger_core::budget::{Adaptive, Concurrent, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger_core::{Ratio, Seed};
use stagger_sim::outage::ProcessGuards;

use crate::storm::parse;

/// Guards of a client process: a budget, a circuit breaker, or both, each with its default settings.
#[derive(Clone, Debug)]
pub(super) struct Guards {
    /// The guards as the user wrote them.
    pub(super) text: String,
    budget: Option<AddBudget>,
    has_breaker: bool,
}

/// Adds a new budget to the guards of a process.
type AddBudget = fn(ProcessGuards, Seed) -> ProcessGuards;

#[derive(Clone, Copy, Debug)]
enum Keyword {
    None,
    Budget(AddBudget),
    Breaker,
}

const KEYWORDS: [(&str, Keyword); 9] = [
    ("none", Keyword::None),
    ("tokens", Keyword::Budget(|guards, _| guards.budget(Tokens::new()))),
    ("window", Keyword::Budget(|guards, _| guards.budget(Window::new()))),
    ("lifetime", Keyword::Budget(|guards, _| guards.budget(Lifetime::new()))),
    ("throttle", Keyword::Budget(|guards, _| guards.budget(grpc_throttle()))),
    ("concurrent", Keyword::Budget(|guards, _| guards.budget(Concurrent::new()))),
    ("adaptive", Keyword::Budget(|guards, seed| guards.budget(Adaptive::new(seed)))),
    ("success-rate", Keyword::Budget(|guards, _| guards.budget(SuccessRate::new()))),
    ("breaker", Keyword::Breaker),
];

impl Guards {
    /// Creates a process with new guards of this kind.
    pub(super) fn process(&self, seed: Seed) -> ProcessGuards {
        let process = self.budget.map_or_else(ProcessGuards::none, |add| add(ProcessGuards::none(), seed));
        if self.has_breaker { process.breaker(CircuitBreaker::new(seed)) } else { process }
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
        let mut guards = Self { text: text.trim().to_owned(), budget: None, has_breaker: false };
        for keyword in text.split('+') {
            match parse::keyword(keyword, &KEYWORDS)? {
                Keyword::None => {}
                Keyword::Budget(_) if guards.budget.is_some() => {
                    return Err(format!("`{text}` names two budgets; keep one of them"));
                }
                Keyword::Budget(budget) => guards.budget = Some(budget),
                Keyword::Breaker => guards.has_breaker = true,
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
        let process = format!("{:?}", both.process(Seed::new(1)));
        assert!(process.contains("Tokens") && process.contains("CircuitBreaker"), "{process}");
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
