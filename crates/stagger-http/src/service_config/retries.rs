//! `retryPolicy`, and the settings of a policy that it cannot express.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use stagger::profile::GRPC_A6;
use stagger::schedule::Backoff;
use stagger::text::Compact;
use stagger::{HintMode, Jitter, Policy, PolicyError, Ratio};

use super::config::{MAX_ATTEMPTS, ServiceConfigError};
use crate::grpc::Codes;

/// `retryPolicy`: how a method is retried, and the retryable status codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodRetries {
    policy: Policy,
    codes: Codes,
}

impl MethodRetries {
    /// Builds the policy that gRPC follows: the profile [`GRPC_A6`] with these values. An initial backoff above the
    /// longest is reduced to it, and more than five attempts to five.
    pub(super) fn from_fields(
        attempts: u32,
        initial: Duration,
        max: Duration,
        multiplier: f64,
        codes: Codes,
    ) -> Result<Self, PolicyError> {
        let shape = GRPC_A6.policy().to_builder().multiplier(multiplier);
        let policy = shape.base(initial.min(max)).cap(max).max_attempts(attempts.min(MAX_ATTEMPTS)).build()?;
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
        let mut problems = Vec::new();
        let mut multiplier = 1.0;
        match policy.backoff() {
            Backoff::Exponential { .. } if policy.jitter() == Jitter::Decorrelated => {
                problems.push("jitter=decorrelated has no backoff ceilings, which gRPC needs; use full jitter");
            }
            Backoff::Exponential { multiplier: factor, .. } => multiplier = *factor,
            Backoff::Constant { .. } => {}
            Backoff::Stop => problems.push("the policy makes no retries; omit retryPolicy"),
            Backoff::Zero => problems.push("initialBackoff must not be zero; use a backoff with a delay"),
            _ => problems.push("gRPC's delays grow by a constant factor; use exponential or constant backoff"),
        }
        if !policy.allows_retries() && !matches!(policy.backoff(), Backoff::Stop) {
            problems.push("max-attempts=1 makes no retries; omit retryPolicy");
        }
        if codes.is_empty() {
            problems.push("there are no retryable status codes; add at least UNAVAILABLE");
        }
        if !problems.is_empty() {
            return Err(ServiceConfigError::all(problems.into_iter().map(str::to_owned).collect()));
        }
        let attempts = policy.max_attempts().map_or(MAX_ATTEMPTS, NonZeroU32::get);
        // A cap that is the ceiling of the last retry is never reached.
        let cap = policy.cap().or_else(|| last_ceiling(policy)).unwrap_or(policy.base());
        let mapped = Self::from_fields(attempts, policy.base(), cap, multiplier, codes)
            .map_err(|_| ServiceConfigError::one("gRPC's delays have a base and a cap above it; set both"))?;
        let unmapped = Unmapped::between(policy, &mapped.policy);
        Ok((mapped, unmapped))
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

/// Returns the ceiling of the last retry that gRPC makes.
fn last_ceiling(policy: &Policy) -> Option<Duration> {
    let plain = policy.to_builder().jitter(Jitter::None).floor(Duration::ZERO).unlimited_elapsed().build().ok()?;
    let ceilings = (1..MAX_ATTEMPTS).map_while(|retry| plain.bounds(retry));
    ceilings.map(|(_, ceiling)| ceiling).last()
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
    /// Returns the settings in which the policy that gRPC follows differs from the one that was asked for.
    fn between(requested: &Policy, mapped: &Policy) -> Vec<Self> {
        let mut unmapped = Vec::new();
        if requested.jitter() != mapped.jitter() {
            unmapped.push(Self::Jitter(requested.jitter()));
        }
        if requested.max_attempts() != mapped.max_attempts() {
            unmapped.push(Self::MaxAttempts(requested.max_attempts()));
        }
        if requested.floor() != mapped.floor() {
            unmapped.push(Self::Floor(requested.floor()));
        }
        if requested.spread() != mapped.spread() {
            unmapped.push(Self::Spread(requested.spread()));
        }
        unmapped.extend(requested.max_elapsed().map(Self::MaxElapsed));
        if requested.hint_mode() != mapped.hint_mode() {
            unmapped.push(Self::HintMode(requested.hint_mode()));
        }
        if requested.max_hint() != mapped.max_hint() {
            unmapped.push(Self::MaxHint(requested.max_hint()));
        }
        if requested.throttled_base() != mapped.throttled_base() {
            unmapped.push(Self::ThrottledBase(requested.throttled_base()));
        }
        if requested.local_base() != mapped.local_base() {
            unmapped.push(Self::LocalBase(requested.local_base()));
        }
        unmapped.extend(requested.stable_after().map(Self::StableAfter));
        unmapped
    }

    /// Returns the name of the setting in the policy language, such as `max-attempts`; `hedge` for that of a hedge.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Jitter(_) => "jitter",
            Self::MaxAttempts(_) => "max-attempts",
            Self::Floor(_) => "floor",
            Self::Spread(_) => "spread",
            Self::MaxElapsed(_) => "max-elapsed",
            Self::HintMode(_) => "hint",
            Self::MaxHint(_) => "max-hint",
            Self::ThrottledBase(_) => "throttled-base",
            Self::LocalBase(_) => "local-base",
            Self::StableAfter(_) => "stable-after",
            Self::Quantile(_) => "hedge",
        }
    }
}

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timed = |duration| Compact(duration).to_string();
        let (value, instead) = match *self {
            Self::Jitter(jitter) => (jitter.to_string(), "gRPC draws within ±20% of the ceiling"),
            Self::MaxAttempts(Some(attempts)) => (attempts.to_string(), "gRPC makes at most 5"),
            Self::MaxAttempts(None) => ("inf".to_owned(), "gRPC makes at most 5"),
            Self::Floor(floor) => (timed(floor), "gRPC has no minimum delay"),
            Self::Spread(spread) => (timed(spread), "gRPC makes the first attempt immediately"),
            Self::MaxElapsed(limit) => (timed(limit), "set a deadline on the call, which also ends its last attempt"),
            Self::HintMode(mode) => (mode.to_string(), "gRPC waits for exactly the duration of a pushback"),
            Self::MaxHint(Some(longest)) => {
                (timed(longest), "gRPC waits for the duration of a pushback, limited only by the deadline")
            }
            Self::MaxHint(None) => ("inf".to_owned(), "read again, the policy has the default limit of this library"),
            Self::ThrottledBase(base) => (timed(base), "gRPC waits no longer after RESOURCE_EXHAUSTED"),
            Self::LocalBase(base) => (timed(base), "gRPC does not distinguish local exhaustion"),
            Self::StableAfter(lived) => (timed(lived), "a gRPC call is not a connection"),
            Self::Quantile(share) => {
                return write!(f, "hedge after {share} of attempts: gRPC's hedgingDelay is a fixed delay");
            }
        };
        write!(f, "{}={value}: {instead}", self.name())
    }
}
