use core::num::NonZeroU32;
use core::time::Duration;

use stagger::profile::GRPC_A6;
use stagger::schedule::Backoff;
use stagger::{Jitter, Policy, PolicyError};
use stagger_config::service_config::MAX_ATTEMPTS;

use super::{ServiceConfigError, Unmapped};
use crate::grpc::Codes;

/// `retryPolicy`: how a method is retried, and the retryable status codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodRetries {
    policy: Policy,
    codes: Codes,
}

impl MethodRetries {
    /// Builds the policy from the fields of a `retryPolicy`: the profile [`GRPC_A6`] with these values. An `initial` backoff
    /// above `max` is reduced to `max`.
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

    /// Maps a policy to a `retryPolicy` with these retryable codes.
    ///
    /// Also returns the settings that a service config cannot express: those in which [`policy`](Self::policy), which is what
    /// gRPC will do, differs from the given one.
    ///
    /// # Errors
    /// Returns an error if the policy makes no retries, if its delays do not grow by a constant factor, or if `codes` is
    /// empty.
    pub fn from_policy(policy: &Policy, codes: Codes) -> Result<(Self, Vec<Unmapped>), ServiceConfigError> {
        let (multiplier, problem) = match policy.backoff() {
            Backoff::Exponential { .. } if policy.jitter() == Jitter::Decorrelated => {
                (1.0, Some("jitter=decorrelated has no backoff ceilings, which gRPC needs; use full jitter"))
            }
            Backoff::Exponential { multiplier, .. } => (*multiplier, None),
            Backoff::Constant { .. } => (1.0, None),
            Backoff::Stop => (1.0, Some("the policy makes no retries; omit retryPolicy")),
            Backoff::Zero => (1.0, Some("initialBackoff must not be zero; use a backoff with a delay")),
            _ => (1.0, Some("gRPC's delays grow by a constant factor; use exponential or constant backoff")),
        };
        let is_single = !policy.allows_retries() && !matches!(policy.backoff(), Backoff::Stop);
        let problems = [
            problem,
            is_single.then_some("max-attempts=1 makes no retries; omit retryPolicy"),
            codes.is_empty().then_some("there are no retryable status codes; add at least UNAVAILABLE"),
        ];
        ServiceConfigError::unless(problems.into_iter().flatten().map(str::to_owned).collect(), ())?;
        let attempts = policy.max_attempts().map_or(MAX_ATTEMPTS, NonZeroU32::get);
        let backoffs = (policy.base(), policy.cap().unwrap_or_else(|| highest_ceiling(policy)));
        let mapped = Self::from_fields(attempts, backoffs, multiplier, codes)
            .map_err(|error| ServiceConfigError::one(error.to_string()))?;
        Ok((mapped, unmapped(policy, &mapped.policy)))
    }

    /// Returns the policy, for a [`Retrier`](stagger::Retrier).
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the retryable status codes.
    #[must_use]
    pub const fn retryable_codes(&self) -> Codes {
        self.codes
    }

    /// Returns the maximum number of attempts, including the first. Range: 2 to 5.
    #[must_use]
    pub fn max_attempts(&self) -> NonZeroU32 {
        // `from_fields` always sets the limit.
        self.policy.max_attempts().unwrap_or(NonZeroU32::MIN)
    }

    /// Returns the ceiling of the first delay.
    #[must_use]
    pub const fn initial_backoff(&self) -> Duration {
        self.policy.base()
    }

    /// Returns the maximum ceiling of the delays.
    #[must_use]
    pub fn max_backoff(&self) -> Duration {
        self.policy.cap().unwrap_or_else(|| self.policy.base())
    }

    /// Returns the factor by which the ceilings grow.
    #[must_use]
    pub const fn backoff_multiplier(&self) -> f64 {
        match self.policy.backoff() {
            Backoff::Exponential { multiplier, .. } => *multiplier,
            _ => 1.0,
        }
    }
}

/// Returns the ceiling of the last retry that gRPC makes. As a cap it is never reached.
fn highest_ceiling(policy: &Policy) -> Duration {
    let plain = policy.to_builder().jitter(Jitter::None).max_attempts(MAX_ATTEMPTS).build();
    plain.ok().and_then(|plain| plain.bounds(MAX_ATTEMPTS - 1)).map_or(policy.base(), |(_, ceiling)| ceiling)
}

/// Returns the settings in which gRPC's policy differs from the requested one.
fn unmapped(requested: &Policy, mapped: &Policy) -> Vec<Unmapped> {
    fn differing<T: Copy + PartialEq>(requested: T, mapped: T, setting: fn(T) -> Unmapped) -> Option<Unmapped> {
        (requested != mapped).then(|| setting(requested))
    }
    [
        differing(requested.jitter(), mapped.jitter(), Unmapped::Jitter),
        differing(requested.max_attempts(), mapped.max_attempts(), Unmapped::MaxAttempts),
        differing(requested.floor(), mapped.floor(), Unmapped::Floor),
        differing(requested.spread(), mapped.spread(), Unmapped::Spread),
        requested.max_elapsed().map(Unmapped::MaxElapsed),
        differing(requested.hint_mode(), mapped.hint_mode(), Unmapped::HintMode),
        differing(requested.max_hint(), mapped.max_hint(), Unmapped::MaxHint),
        differing(requested.throttled_base(), mapped.throttled_base(), Unmapped::ThrottledBase),
        differing(requested.local_base(), mapped.local_base(), Unmapped::LocalBase),
        requested.stable_after().map(Unmapped::StableAfter),
    ]
    .into_iter()
    .flatten()
    .collect()
}
