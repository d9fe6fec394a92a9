use core::num::NonZeroU32;
use core::time::Duration;

use stagger::profile::GRPC_A6;
use stagger::{Jitter, Policy, PolicyError, schedule::Backoff};

use super::{MOST_ATTEMPTS, ServiceConfigError, Unsaid};
use crate::grpc::Codes;

/// `retryPolicy`: how a method is retried, and after which codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retries {
    policy: Policy,
    codes: Codes,
}

impl Retries {
    /// What these numbers mean: the profile [`GRPC_A6`] with them. No delay is above `max`, so that an `initial` above it is
    /// as good as `max`.
    pub(super) fn of_numbers(
        attempts: u32,
        (initial, max): (Duration, Duration),
        multiplier: f64,
        codes: Codes,
    ) -> Result<Self, PolicyError> {
        let shape = GRPC_A6.policy().to_builder().multiplier(multiplier);
        let policy = shape.base(initial.min(max)).cap(max).max_attempts(attempts.min(MOST_ATTEMPTS)).build()?;
        Ok(Self { policy, codes })
    }

    /// What a service config can say of a policy, for these codes, and what it cannot: each setting in which
    /// [`policy`](Self::policy), which is what gRPC will do, differs from the one given.
    ///
    /// # Errors
    /// It makes no retry; its delays grow otherwise than by a factor; there is no code.
    pub fn new(policy: &Policy, codes: Codes) -> Result<(Self, Vec<Unsaid>), ServiceConfigError> {
        let multiplier = match policy.backoff() {
            Backoff::Exponential { multiplier, .. } if policy.jitter() != Jitter::Decorrelated => Ok(*multiplier),
            Backoff::Exponential { .. } => Err("jitter=decorrelated has no ceilings, and gRPC has no other: use full"),
            Backoff::Constant { .. } => Ok(1.0),
            Backoff::Stop => Err("the policy makes no retry: leave retryPolicy out"),
            Backoff::Zero => Err("initialBackoff cannot be zero: use a backoff"),
            _ => Err("gRPC's delays grow by a factor: use exponential or constant backoff"),
        };
        let mut faults = Vec::new();
        let multiplier = multiplier.unwrap_or_else(|fault| {
            faults.push(fault.to_owned());
            1.0
        });
        if !policy.allows_retries() && !matches!(policy.backoff(), Backoff::Stop) {
            faults.push("max-attempts=1 makes no retry: leave retryPolicy out".to_owned());
        }
        if codes.is_empty() {
            faults.push("there is no code to retry after: name UNAVAILABLE at least".to_owned());
        }
        ServiceConfigError::unless(faults, ())?;
        let attempts = policy.max_attempts().map_or(MOST_ATTEMPTS, NonZeroU32::get);
        let lengths = (policy.base(), policy.cap().unwrap_or_else(|| highest(policy)));
        let said = Self::of_numbers(attempts, lengths, multiplier, codes)
            .map_err(|error| ServiceConfigError::one(error.to_string()))?;
        Ok((said, unsaid(policy, &said.policy)))
    }

    /// The policy, for a [`Retrier`](stagger::Retrier).
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The codes after which the method is retried.
    #[must_use]
    pub const fn codes(&self) -> Codes {
        self.codes
    }

    /// How many attempts there are at most, the first included. Range 2 to 5.
    #[must_use]
    pub fn max_attempts(&self) -> NonZeroU32 {
        // There is always a limit.
        self.policy.max_attempts().unwrap_or(NonZeroU32::MIN)
    }

    /// The ceiling of the first delay.
    #[must_use]
    pub const fn initial_backoff(&self) -> Duration {
        self.policy.base()
    }

    /// The highest ceiling.
    #[must_use]
    pub fn max_backoff(&self) -> Duration {
        self.policy.cap().unwrap_or_else(|| self.policy.base())
    }

    /// By what the ceilings grow.
    #[must_use]
    pub const fn backoff_multiplier(&self) -> f64 {
        match self.policy.backoff() {
            Backoff::Exponential { multiplier, .. } => *multiplier,
            _ => 1.0,
        }
    }
}

/// The ceiling of the last retry that gRPC makes: as good as none above it.
fn highest(policy: &Policy) -> Duration {
    let plain = policy.to_builder().jitter(Jitter::None).max_attempts(MOST_ATTEMPTS).build();
    plain.ok().and_then(|plain| plain.bounds(MOST_ATTEMPTS - 1)).map_or(policy.base(), |(_, ceiling)| ceiling)
}

/// In what gRPC's policy differs from the one that was meant.
fn unsaid(meant: &Policy, said: &Policy) -> Vec<Unsaid> {
    let differs = |differs: bool, what: Unsaid| differs.then_some(what);
    let set = |length: Duration, what: fn(Duration) -> Unsaid| (!length.is_zero()).then(|| what(length));
    let own = |meant: Duration, said: Duration, what: fn(Duration) -> Unsaid| (meant != said).then(|| what(meant));
    [
        differs(meant.jitter() != said.jitter(), Unsaid::Jitter(meant.jitter())),
        differs(meant.max_attempts() != said.max_attempts(), Unsaid::MaxAttempts(meant.max_attempts())),
        set(meant.floor(), Unsaid::Floor),
        set(meant.spread(), Unsaid::Spread),
        meant.max_elapsed().map(Unsaid::MaxElapsed),
        differs(meant.hint_mode() != said.hint_mode(), Unsaid::HintMode(meant.hint_mode())),
        differs(meant.max_hint() != said.max_hint(), Unsaid::MaxHint(meant.max_hint())),
        own(meant.throttled_base(), said.throttled_base(), Unsaid::ThrottledBase),
        own(meant.local_base(), said.local_base(), Unsaid::LocalBase),
        meant.stable_after().map(Unsaid::StableAfter),
    ]
    .into_iter()
    .flatten()
    .collect()
}
