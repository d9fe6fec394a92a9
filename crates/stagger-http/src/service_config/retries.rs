use core::num::NonZeroU32;
use core::time::Duration;

use stagger::profile::GRPC_A6;
use stagger::{Backoff, Jitter, Policy, PolicyError};

use super::{MAX_ATTEMPTS, ServiceConfigError, Unmapped};
use crate::grpc::Codes;

/// `retryPolicy`: how a method is retried, and after which codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodRetries {
    policy: Policy,
    codes: Codes,
}

impl MethodRetries {
    /// What these numbers mean: the profile [`GRPC_A6`] with them. No delay is above `max`, so that an `initial` above it is
    /// as good as `max`.
    pub(super) fn from_fields(
        attempts: u32,
        (initial, max): (Duration, Duration),
        multiplier: f64,
        codes: Codes,
    ) -> Result<Self, PolicyError> {
        let shape = GRPC_A6.policy().to_builder().multiplier(multiplier);
        let policy = shape.base(initial.min(max)).cap(max).max_attempts(attempts.min(MAX_ATTEMPTS)).build()?;
        Ok(Self { policy, codes })
    }

    /// What a service config can say of a policy, for these codes, and what it cannot: each setting in which
    /// [`policy`](Self::policy), which is what gRPC will do, differs from the one given.
    ///
    /// # Errors
    /// It makes no retry; its delays grow otherwise than by a factor; there is no code.
    pub fn from_policy(policy: &Policy, codes: Codes) -> Result<(Self, Vec<Unmapped>), ServiceConfigError> {
        let multiplier = match policy.backoff() {
            Backoff::Exponential { multiplier, .. } if policy.jitter() != Jitter::Decorrelated => Ok(*multiplier),
            Backoff::Exponential { .. } => Err("jitter=decorrelated has no ceilings, and gRPC has no other: use full"),
            Backoff::Constant { .. } => Ok(1.0),
            Backoff::Stop => Err("the policy makes no retry: leave retryPolicy out"),
            Backoff::Zero => Err("initialBackoff cannot be zero: use a backoff"),
            _ => Err("gRPC's delays grow by a factor: use exponential or constant backoff"),
        };
        let mut problems = Vec::new();
        let multiplier = multiplier.unwrap_or_else(|problem| {
            problems.push(problem.to_owned());
            1.0
        });
        if !policy.retries() && !matches!(policy.backoff(), Backoff::Stop) {
            problems.push("max-attempts=1 makes no retry: leave retryPolicy out".to_owned());
        }
        if codes.is_empty() {
            problems.push("there is no code to retry after: name UNAVAILABLE at least".to_owned());
        }
        ServiceConfigError::unless(problems, ())?;
        let attempts = policy.max_attempts().map_or(MAX_ATTEMPTS, NonZeroU32::get);
        let lengths = (policy.base(), policy.cap().unwrap_or_else(|| highest_ceiling(policy)));
        let mapped = Self::from_fields(attempts, lengths, multiplier, codes)
            .map_err(|error| ServiceConfigError::one(error.to_string()))?;
        Ok((mapped, unmapped(policy, &mapped.policy)))
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
fn highest_ceiling(policy: &Policy) -> Duration {
    let plain = policy.to_builder().jitter(Jitter::None).max_attempts(MAX_ATTEMPTS).build();
    plain.ok().and_then(|plain| plain.bounds(MAX_ATTEMPTS - 1)).map_or(policy.base(), |(_, ceiling)| ceiling)
}

/// In what gRPC's policy differs from the one that was meant.
fn unmapped(requested: &Policy, mapped: &Policy) -> Vec<Unmapped> {
    let differs = |differs: bool, what: Unmapped| differs.then_some(what);
    let set = |length: Duration, what: fn(Duration) -> Unmapped| (!length.is_zero()).then(|| what(length));
    let own = |requested: Duration, mapped: Duration, what: fn(Duration) -> Unmapped| {
        (requested != mapped).then(|| what(requested))
    };
    [
        differs(requested.jitter() != mapped.jitter(), Unmapped::Jitter(requested.jitter())),
        differs(requested.max_attempts() != mapped.max_attempts(), Unmapped::MaxAttempts(requested.max_attempts())),
        set(requested.floor(), Unmapped::Floor),
        set(requested.spread(), Unmapped::Spread),
        requested.max_elapsed().map(Unmapped::MaxElapsed),
        differs(requested.hint_mode() != mapped.hint_mode(), Unmapped::HintMode(requested.hint_mode())),
        differs(requested.max_hint() != mapped.max_hint(), Unmapped::MaxHint(requested.max_hint())),
        own(requested.throttled_base(), mapped.throttled_base(), Unmapped::ThrottledBase),
        own(requested.local_base(), mapped.local_base(), Unmapped::LocalBase),
        requested.stable_after().map(Unmapped::StableAfter),
    ]
    .into_iter()
    .flatten()
    .collect()
}
