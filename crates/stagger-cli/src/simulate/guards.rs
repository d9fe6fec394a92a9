use core::str::FromStr;

use stagger_core::breaker::CircuitBreaker;
use stagger_core::budget::{Adaptive, Concurrent, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger_core::{Ratio, Seed};
use stagger_sim::outage::ProcessGuards;

use crate::storm::words;

/// What a client process guards its retries with, each with its defaults.
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
enum Word {
    None,
    Budget(Budget),
    Breaker,
}

const WORDS: [(&str, Word); 9] = [
    ("none", Word::None),
    ("tokens", Word::Budget(Budget::Tokens)),
    ("window", Word::Budget(Budget::Window)),
    ("lifetime", Word::Budget(Budget::Lifetime)),
    ("throttle", Word::Budget(Budget::Throttle)),
    ("concurrent", Word::Budget(Budget::Concurrent)),
    ("adaptive", Word::Budget(Budget::Adaptive)),
    ("success-rate", Word::Budget(Budget::SuccessRate)),
    ("breaker", Word::Breaker),
];

impl Guards {
    /// As the user wrote them.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// One process with these guards, new ones.
    pub(super) fn process(&self, seed: Seed) -> ProcessGuards {
        let process = match self.budget {
            None => ProcessGuards::none(),
            Some(Budget::Tokens) => ProcessGuards::none().budget(Tokens::new()),
            Some(Budget::Window) => ProcessGuards::none().budget(Window::new()),
            Some(Budget::Lifetime) => ProcessGuards::none().budget(Lifetime::new()),
            Some(Budget::Throttle) => ProcessGuards::none().budget(grpc()),
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

/// What gRPC A6 shows: ten tokens, and a tenth of one for each success.
fn grpc() -> Throttle {
    const {
        match Throttle::new(10, Ratio::percent(10)) {
            Ok(throttle) => throttle,
            Err(_) => panic!("ten tokens are neither too few nor too many"),
        }
    }
}

impl FromStr for Guards {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut guards = Self { text: text.trim().to_owned(), budget: None, breaker: None };
        for word in text.split('+') {
            match words::one_of(word, &WORDS)? {
                Word::None => {}
                Word::Budget(_) if guards.budget.is_some() => {
                    return Err(format!("`{text}` has two budgets; keep one of them"));
                }
                Word::Budget(budget) => guards.budget = Some(budget),
                Word::Breaker => guards.breaker = Some(Breaker),
            }
        }
        Ok(guards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_and_a_breaker_go_together_and_two_budgets_do_not() {
        let both: Guards = "tokens+breaker".parse().unwrap();
        assert_eq!((both.budget, both.breaker), (Some(Budget::Tokens), Some(Breaker)));
        assert!("tokens+window".parse::<Guards>().is_err_and(|error| error.contains("keep one of them")));
        assert!("tokns".parse::<Guards>().is_err_and(|error| error.contains("none, tokens, window")));
    }

    #[test]
    fn every_guard_can_be_had() {
        for (word, _) in WORDS {
            let process = format!("{:?}", word.parse::<Guards>().unwrap().process(Seed::new(1)));
            assert_eq!(process.contains("Some"), word != "none", "{word}: {process}");
        }
    }
}
