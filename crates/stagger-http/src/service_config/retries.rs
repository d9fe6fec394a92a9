use core::num::NonZeroU32;
use core::time::Duration;

use stagger::schedule::Backoff;
use stagger::{Policy, PolicyError};
use stagger_config::service_config::RetryFields;

use super::{ServiceConfigError, Unmapped};
use crate::grpc::Codes;

/// `retryPolicy`: how a method is retried, and the retryable status codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodRetries {
    policy: Policy,
    codes: Codes,
}

impl MethodRetries {
    /// Builds the policy from the fields of a `retryPolicy`.
    pub(super) fn from_fields(
        attempts: u32,
        (initial, max): (Duration, Duration),
        multiplier: f64,
        codes: Codes,
    ) -> Result<Self, PolicyError> {
        let fields = RetryFields {
            max_attempts: attempts,
            initial_backoff: initial,
            max_backoff: max,
            backoff_multiplier: multiplier,
            codes: Vec::new(),
        };
        Self::new(&fields, codes)
    }

    fn new(fields: &RetryFields, codes: Codes) -> Result<Self, PolicyError> {
        let policy = fields.policy()?;
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
        let no_codes = codes.is_empty().then_some("there are no retryable status codes; add at least UNAVAILABLE");
        let (fields, losses) = match (RetryFields::from_policy(policy), no_codes) {
            (Ok(mapped), None) => mapped,
            (Ok(_), Some(problem)) => return Err(ServiceConfigError::one(problem)),
            (Err(error), problem) => {
                let problems = error.problems().chain(problem).map(str::to_owned);
                return Err(ServiceConfigError::all(problems.collect()));
            }
        };
        let mapped = Self::new(&fields, codes).map_err(|error| ServiceConfigError::one(error.to_string()))?;
        Ok((mapped, losses.iter().filter_map(|loss| Unmapped::of(loss.name, policy)).collect()))
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
