//! The strategies of the reference figures, made of policies and budgets as they are shipped.
//!
//! Two limiters of the tables are nobody's here, and are left out: `ratio10b`, a bucket that fills with every request up to
//! 100 ([`Lifetime`](stagger_core::budget::Lifetime) has no such limit), and `sre`, which refuses first attempts, too
//! ([`Adaptive`](stagger_core::budget::Adaptive) refuses retries alone).

use core::time::Duration;

use stagger_core::budget::{Refund, Throttle, Tokens, Window};
use stagger_core::{Jitter, Policy, Ratio, Seed};
use stagger_sim::outage::{Figures, Process, Scenario};

pub(super) struct Strategy {
    policy: Policy,
    limiter: &'static str,
}

impl Strategy {
    /// By the name in the tables.
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
            _ => panic!("there is no strategy {name}"),
        };
        Self { policy: policy.build().unwrap(), limiter }
    }

    pub(super) fn run(&self, scenario: &Scenario, seed: Seed) -> Figures {
        scenario.run(&self.policy, |_| self.process(), seed)
    }

    fn process(&self) -> Process {
        let (process, tenth) = (Process::unguarded(), Ratio::percent(10));
        match self.limiter {
            "" => process,
            "aws500" => process.budget(Tokens::builder().refund(Refund::LastCost).reward(1).build().unwrap()),
            "ratio10" => process.budget(Window::builder().ratio(tenth).min_per_second(10).build().unwrap()),
            "ratio10s" => {
                process.budget(Tokens::builder().capacity(100).cost(1).fractional_reward(tenth).build().unwrap())
            }
            "grpc" => process.budget(Throttle::new(10, tenth).unwrap()),
            limiter => panic!("there is no limiter {limiter}"),
        }
    }
}
