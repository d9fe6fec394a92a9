//! The default policy and the search space for each purpose.

use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder};

use crate::lint::Purpose;
use crate::lint::context::usual_policy;

/// The range of policies that suit a purpose.
pub(super) struct SearchSpace {
    /// The recommendation if there is nothing to simulate.
    pub(super) default_policy: Policy,
    /// In milliseconds.
    pub(super) bases: &'static [u64],
    /// In milliseconds. Caps below ten times the base are skipped.
    pub(super) caps: &'static [u64],
    pub(super) jitters: &'static [Jitter],
    pub(super) attempts: Attempts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempts {
    /// A fixed limit, for calls whose callers wait and must not be delayed by a spread.
    AtMost(u32),
    /// As many attempts as all clients need to recover, and at least this many.
    Enough(u32),
    Unlimited,
}

/// The multipliers to try; the default comes first, for policies without multiplier.
pub(super) const MULTIPLIERS: [f64; 3] = [2.0, 1.5, 3.0];

/// Minimum ratio of cap to base.
pub(super) const CAP_IN_BASES: u32 = 10;

impl SearchSpace {
    pub(super) fn for_purpose(purpose: Option<Purpose>) -> Self {
        type Ranges = (&'static [u64], &'static [u64], &'static [Jitter], Attempts);
        let call = |bases: &'static [u64], caps: &'static [u64], attempts| -> Ranges {
            (bases, caps, &[Jitter::Full], Attempts::AtMost(attempts))
        };
        let (bases, caps, jitters, attempts): Ranges = match purpose {
            Some(Purpose::Interactive) => call(&[20, 50, 100, 200, 500], &[500, 1_000, 2_000, 5_000], 3),
            Some(Purpose::Serverless) => call(&[50, 100, 200, 500], &[2_000, 5_000], 3),
            Some(Purpose::Near) => call(&[10, 20, 50, 100], &[1_000, 10_000, 30_000], 4),
            Some(Purpose::Far) => call(&[100, 200, 500, 1_000], &[10_000, 30_000], 4),
            Some(Purpose::Background) => {
                let jitters = &[Jitter::Decorrelated, Jitter::Full];
                (&[1_000, 2_000, 5_000], &[30_000, 60_000], jitters, Attempts::Enough(10))
            }
            Some(Purpose::Reconnecting) => {
                let jitters = &[Jitter::Full, Jitter::Equal];
                (&[500, 1_000, 2_000, 5_000], &[30_000, 60_000], jitters, Attempts::Unlimited)
            }
            // Without a purpose, assumes a typical call.
            None => call(&[50, 100, 200, 500, 1_000], &[10_000, 30_000], 4),
        };
        Self { default_policy: usual_policy(purpose), bases, caps, jitters, attempts }
    }

    /// Returns whether clients retry until they are back, with unlimited attempts.
    pub(super) fn is_long_lived(&self) -> bool {
        self.attempts == Attempts::Unlimited
    }

    /// Starts a policy of the search space, with the settings that all its policies share.
    pub(super) fn builder(&self, base: Duration, cap: Duration, multiplier: f64, jitter: Jitter) -> PolicyBuilder {
        let builder = match jitter {
            Jitter::Decorrelated => Policy::decorrelated(base, cap),
            jitter => Policy::exponential(base, cap).multiplier(multiplier).jitter(jitter),
        };
        let builder = match self.attempts {
            Attempts::AtMost(attempts) => builder.max_attempts(attempts),
            Attempts::Enough(_) | Attempts::Unlimited => builder.unlimited_attempts(),
        };
        match self.default_policy.stable_after() {
            Some(lived) => builder.stable_after(lived),
            None => builder,
        }
    }
}

/// Returns why the search space suits the purpose.
pub(super) const fn rationale(purpose: Option<Purpose>) -> &'static str {
    match purpose {
        Some(Purpose::Interactive) => "a user waits: two or three attempts with short delays and a low cap",
        Some(Purpose::Serverless) => {
            "execution time is billed: at most three attempts, and none after the invocation limit"
        }
        Some(Purpose::Near) => "a nearby API: a base of a few times the duration of a call, three or four attempts",
        Some(Purpose::Far) => "a database or a remote service: a base above 100 ms, three or four attempts",
        Some(Purpose::Background) => "no caller waits: long delays that drift apart, and many attempts",
        Some(Purpose::Reconnecting) => {
            "a long-lived connection: the first wave is spread, and the backoff resets only after the connection has \
             been stable"
        }
        None => "assuming a call to a nearby service: four attempts",
    }
}
