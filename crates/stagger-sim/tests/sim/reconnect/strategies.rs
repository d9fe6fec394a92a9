//! The strategies of the reference figures, built from policies and profiles of this library.

use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder, Ratio, profile};
use stagger_sim::reconnect::{FirstAttempt, ReconnectScenarioBuilder, RetryAfter};

use super::tables::Setting;

const BASE: Duration = Duration::from_millis(500);
const CAP: Duration = Duration::from_secs(30);

/// A strategy: a policy, and the settings of the scenario that belong to it.
pub(super) struct Strategy {
    pub(super) policy: Policy,
    first: FirstAttempt,
    hints: RetryAfter,
}

impl Strategy {
    fn of(builder: PolicyBuilder) -> Self {
        let policy = builder.unlimited_attempts().unlimited_elapsed().unlimited_hint().build().unwrap();
        Self { policy, first: FirstAttempt::AfterDelay, hints: RetryAfter::None }
    }

    pub(super) fn apply(&self, scenario: ReconnectScenarioBuilder) -> ReconnectScenarioBuilder {
        scenario.first_attempt(self.first).retry_after(self.hints)
    }

    /// Returns the strategy with this name in the tables.
    pub(super) fn named(name: &str, setting: &Setting) -> Self {
        let exponential = Policy::exponential(BASE, CAP);
        match name {
            "fixed1s" => Self::of(Policy::constant(Duration::from_secs(1)).jitter(Jitter::None)),
            "fixed1s_pm50" => {
                Self::of(Policy::constant(Duration::from_secs(1)).jitter(Jitter::Factor(Ratio::percent(50))))
            }
            "expo" => Self::of(exponential.jitter(Jitter::None)),
            "full" => Self::of(exponential),
            "equal" => Self::of(exponential.jitter(Jitter::Equal)),
            // As published: capped after the draw.
            "decorr" => Self::of(profile::AWS_BLOG.policy().to_builder().base(BASE).cap(CAP)),
            "cenkalti" => Self::of(profile::CENKALTI.policy().to_builder()),
            // In the tables it connects immediately, as it does when a page is opened; the profile describes its
            // behavior after a disconnect.
            "pladaria" => {
                let policy = profile::RECONNECTING_WEBSOCKET.policy().to_builder();
                Self { first: FirstAttempt::Immediate, ..Self::of(policy) }
            }
            "spread_oracle" => {
                let min_recovery = Duration::from_secs_f64(setting.clients as f64 / setting.rate);
                Self::of(Policy::constant(min_recovery / 20).jitter(Jitter::Full).spread(min_recovery))
            }
            "retry_after" => Self { hints: RetryAfter::Staggered, ..Self::of(exponential) },
            "full_cap120" => Self::of(exponential.cap(Duration::from_secs(120))),
            "full_m1.5" => Self::of(exponential.multiplier(1.5)),
            "full_m4" => Self::of(exponential.multiplier(4.0)),
            _ => panic!("unknown strategy {name}"),
        }
    }
}
