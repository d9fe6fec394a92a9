use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use stagger::text::Compact;
use stagger::{HintMode, Jitter, Policy, Ratio};
use stagger_config::export::{System, instead};

/// A setting that a service config cannot express. Its text names the setting, what gRPC does instead, and what you can do.
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
