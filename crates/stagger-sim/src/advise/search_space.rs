//! What is usual for each purpose: from this a policy is built, and within this it is searched.

use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder, policy, profile};

use crate::lint::Purpose;

/// What suits a purpose.
pub(super) struct SearchSpace {
    /// What is advised where nothing can be computed.
    pub(super) default_policy: Policy,
    /// In milliseconds.
    pub(super) bases: &'static [u64],
    /// In milliseconds. Those of less than ten bases are not used.
    pub(super) caps: &'static [u64],
    pub(super) jitters: &'static [Jitter],
    pub(super) spreads: Spreads,
    pub(super) attempts: Attempts,
    /// Why it is so.
    pub(super) rationale: &'static str,
}

/// Whether the first attempt of an episode may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spreads {
    Yes,
    /// Somebody waits for it.
    No,
}

/// How often it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempts {
    /// So often, whoever comes back.
    AtMost(u32),
    /// As often as it takes for everyone to come back, and at least so often.
    Enough(u32),
    Unlimited,
}

/// How ceilings grow; the usual one first, for where it makes no difference.
pub(super) const MULTIPLIERS: [f64; 3] = [2.0, 1.5, 3.0];

/// How many bases a cap is at least.
pub(super) const CAP_IN_BASES: u32 = 10;

/// A database: patient enough for one that fails over.
const FAR: Policy = policy!(exponential(ms(200), secs(10)).max_attempts(4));

impl SearchSpace {
    pub(super) fn for_purpose(purpose: Option<Purpose>) -> Self {
        let call = |default_policy, bases, caps, attempts, rationale| Self {
            default_policy,
            bases,
            caps,
            jitters: &[Jitter::Full],
            spreads: Spreads::No,
            attempts: Attempts::AtMost(attempts),
            rationale,
        };
        match purpose {
            Some(Purpose::Interactive) => call(
                profile::INTERACTIVE.policy(),
                &[20, 50, 100, 200, 500],
                &[500, 1_000, 2_000, 5_000],
                3,
                "a person waits: two or three attempts, soon, with a low cap",
            ),
            Some(Purpose::Serverless) => call(
                profile::SERVERLESS.policy(),
                &[50, 100, 200, 500],
                &[2_000, 5_000],
                3,
                "a function is billed by its time: at most three attempts, and none beyond what the invocation has left",
            ),
            Some(Purpose::Near) => call(
                Policy::DEFAULT,
                &[10, 20, 50, 100],
                &[1_000, 10_000, 30_000],
                4,
                "an API close by: a base of a few times what a call takes, three or four attempts",
            ),
            Some(Purpose::Far) => call(
                FAR,
                &[100, 200, 500, 1_000],
                &[10_000, 30_000],
                4,
                "a database or a far service: a base above 100 ms, three or four attempts",
            ),
            Some(Purpose::Background) => Self {
                default_policy: profile::BACKGROUND_JOB.policy(),
                bases: &[1_000, 2_000, 5_000],
                caps: &[30_000, 60_000],
                jitters: &[Jitter::Decorrelated, Jitter::Full],
                spreads: Spreads::Yes,
                attempts: Attempts::Enough(10),
                rationale: "nobody waits: long delays that drift apart, and many attempts",
            },
            Some(Purpose::Reconnecting) => Self {
                default_policy: profile::WEB_SOCKET.policy(),
                bases: &[500, 1_000, 2_000, 5_000],
                caps: &[30_000, 60_000],
                jitters: &[Jitter::Full, Jitter::Equal],
                spreads: Spreads::Yes,
                attempts: Attempts::Unlimited,
                rationale: "a connection that is kept up: the first wave is spread, and the count begins again only after a \
                          healthy while",
            },
            // What is not said is a call like most.
            None => call(
                Policy::DEFAULT,
                &[50, 100, 200, 500, 1_000],
                &[10_000, 30_000],
                4,
                "what it is for was not said: a call to something near, four attempts",
            ),
        }
    }

    /// Whether it goes on until everyone is back, however long that takes.
    pub(super) fn is_long_lived(&self) -> bool {
        self.attempts == Attempts::Unlimited
    }

    /// What is to be searched, with the settings that are the same for all of it.
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
