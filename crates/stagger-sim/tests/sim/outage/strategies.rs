//! The strategies of the reference figures, built from policies and budgets of this library, and from custom guards.

use core::time::Duration;

use stagger_core::budget::{Refund, Throttle, Tokens, Window};
use stagger_core::{Jitter, Policy, Ratio, Seed};
use stagger_sim::outage::{OutageFigures, OutageScenario, ProcessGuards};

use super::limiters::{PerRequest, Throttling};

/// All seventeen strategies.
pub(super) const NAMES: [&str; 17] = [
    "none",
    "imm3",
    "fixed3",
    "full3",
    "full9",
    "full9_aws500",
    "full9_ratio10",
    "full9_grpc",
    "full9_sre",
    "full3_aws500",
    "full3_ratio10",
    "full3_grpc",
    "full9_ratio10b",
    "full3_ratio10b",
    "full9_ratio10s",
    "full3_ratio10s",
    "full9_sre12s",
];

pub(super) struct Strategy {
    policy: Policy,
    limiter: &'static str,
}

impl Strategy {
    /// Returns the strategy with this name in the tables.
    pub(super) fn named(name: &'static str) -> Self {
        let (retries, limiter) = name.split_once('_').unwrap_or((name, ""));
        let step = Duration::from_millis(100);
        let full = |attempts| Policy::exponential(step, Duration::from_secs(2)).max_attempts(attempts);
        let policy = match retries {
            "none" => full(1),
            "imm3" => Policy::zero().max_attempts(4),
            "fixed3" => Policy::constant(step).jitter(Jitter::None).max_attempts(4),
            "full3" => full(4),
            "full9" => full(10),
            _ => panic!("unknown strategy {name}"),
        };
        Self { policy: policy.build().unwrap(), limiter }
    }

    pub(super) fn run(&self, scenario: &OutageScenario, seed: Seed) -> OutageFigures {
        scenario.run(&self.policy, |seed| self.process(seed), seed)
    }

    fn process(&self, seed: Seed) -> ProcessGuards {
        let (process, tenth) = (ProcessGuards::none(), Ratio::percent(10));
        match self.limiter {
            "" => process,
            "aws500" => process.budget(Tokens::builder().refund(Refund::LastCost).reward(1).build().unwrap()),
            "ratio10" => process.budget(Window::builder().ratio(tenth).min_per_second(10).build().unwrap()),
            "ratio10s" => {
                process.budget(Tokens::builder().capacity(100).cost(1).fractional_reward(tenth).build().unwrap())
            }
            "ratio10b" => process.budget(PerRequest::new()),
            "sre" => process.breaker(Throttling::new(seed, Duration::from_secs(10))),
            "sre12s" => process.breaker(Throttling::new(seed, Duration::from_secs(1))),
            "grpc" => process.budget(Throttle::new(10, tenth).unwrap()),
            limiter => panic!("unknown limiter {limiter}"),
        }
    }
}
