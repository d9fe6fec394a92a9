//! `retryPolicy`, and the settings of a policy that it cannot express.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use stagger::schedule::Backoff;
use stagger::text::Compact;
use stagger::{HintMode, Jitter, Policy, PolicyError, Ratio};
use stagger_config::export::{System, instead};
use stagger_config::service_config::RetryFields;

use super::config::ServiceConfigError;
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
    /// Also returns the settings that a service config cannot express: those in which [`policy`](Self::policy), which
    /// is what gRPC will do, differs from the given one.
    ///
    /// # Errors
    /// Returns an error if the policy makes no retries, if its delays do not grow by a constant factor, or if `codes`
    /// is empty.
    pub fn from_policy(policy: &Policy, codes: Codes) -> Result<(Self, Vec<Unmapped>), ServiceConfigError> {
        let no_codes = match codes.is_empty() {
            true => Some("there are no retryable status codes; add at least UNAVAILABLE"),
            false => None,
        };
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

/// A setting that a service config cannot express. Its text names the setting, what gRPC does instead, and what you can
/// do.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Unmapped {
    /// A jitter other than gRPC's ±20 %.
    Jitter(Jitter),
    /// More than five attempts, or no limit.
    MaxAttempts(Option<NonZeroU32>),
    /// A minimum delay.
    Floor(Duration),
    /// A spread before the first attempt.
    Spread(Duration),
    /// A time after which no retry starts.
    MaxElapsed(Duration),
    /// How a server hint is applied.
    HintMode(HintMode),
    /// The longest server hint that is honored.
    MaxHint(Option<Duration>),
    /// A different base after throttling.
    ThrottledBase(Duration),
    /// A different base after local exhaustion.
    LocalBase(Duration),
    /// The lifetime after which a connection counts as stable.
    StableAfter(Duration),
    /// A hedging delay that is a quantile of the observed latencies.
    Quantile(Ratio),
}

impl Unmapped {
    /// Returns the setting of a policy by its name in the policy language.
    pub(super) fn of(name: &str, policy: &Policy) -> Option<Self> {
        Some(match name {
            "jitter" => Self::Jitter(policy.jitter()),
            "max-attempts" => Self::MaxAttempts(policy.max_attempts()),
            "floor" => Self::Floor(policy.floor()),
            "spread" => Self::Spread(policy.spread()),
            "max-elapsed" => Self::MaxElapsed(policy.max_elapsed()?),
            "hint" => Self::HintMode(policy.hint_mode()),
            "max-hint" => Self::MaxHint(policy.max_hint()),
            "throttled-base" => Self::ThrottledBase(policy.throttled_base()),
            "local-base" => Self::LocalBase(policy.local_base()),
            "stable-after" => Self::StableAfter(policy.stable_after()?),
            _ => return None,
        })
    }
}

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timed = |duration| Compact(duration).to_string();
        let (name, value) = match *self {
            Self::Jitter(jitter) => ("jitter", jitter.to_string()),
            Self::MaxAttempts(Some(attempts)) => ("max-attempts", attempts.to_string()),
            Self::MaxAttempts(None) => ("max-attempts", "inf".to_owned()),
            Self::Floor(floor) => ("floor", timed(floor)),
            Self::Spread(spread) => ("spread", timed(spread)),
            Self::MaxElapsed(limit) => ("max-elapsed", timed(limit)),
            Self::HintMode(mode) => ("hint", mode.to_string()),
            Self::MaxHint(Some(longest)) => ("max-hint", timed(longest)),
            Self::MaxHint(None) => return write!(f, "max-hint=inf: {}", instead(System::Grpc, "max-hint=inf")),
            Self::ThrottledBase(base) => ("throttled-base", timed(base)),
            Self::LocalBase(base) => ("local-base", timed(base)),
            Self::StableAfter(lived) => ("stable-after", timed(lived)),
            Self::Quantile(share) => {
                return write!(f, "hedge after {share} of attempts: gRPC's hedgingDelay is a fixed delay");
            }
        };
        write!(f, "{name}={value}: {}", instead(System::Grpc, name))
    }
}
