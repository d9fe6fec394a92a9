use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use stagger::text::Compact;
use stagger::{HintMode, Jitter, Ratio};

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

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Jitter(jitter) => write!(f, "jitter={jitter}: gRPC draws within ±20% of the ceiling"),
            Self::MaxAttempts(Some(attempts)) => write!(f, "max-attempts={attempts}: gRPC makes at most 5"),
            Self::MaxAttempts(None) => f.write_str("max-attempts=inf: gRPC makes at most 5"),
            Self::Floor(floor) => write!(f, "floor={}: gRPC has no minimum delay", Compact(floor)),
            Self::Spread(spread) => write!(f, "spread={}: gRPC makes the first attempt immediately", Compact(spread)),
            Self::MaxElapsed(limit) => {
                write!(
                    f,
                    "max-elapsed={}: set a deadline on the call, which also ends its last attempt",
                    Compact(limit)
                )
            }
            Self::HintMode(mode) => write!(f, "hint={mode}: gRPC waits for exactly the duration of a pushback"),
            Self::MaxHint(Some(longest)) => {
                write!(
                    f,
                    "max-hint={}: gRPC waits for the duration of a pushback, limited only by the deadline",
                    Compact(longest)
                )
            }
            Self::MaxHint(None) => {
                f.write_str("max-hint=inf: parsed again, the policy has the default limit of this library")
            }
            Self::ThrottledBase(base) => {
                write!(f, "throttled-base={}: gRPC waits no longer after RESOURCE_EXHAUSTED", Compact(base))
            }
            Self::LocalBase(base) => {
                write!(f, "local-base={}: gRPC does not distinguish local exhaustion", Compact(base))
            }
            Self::StableAfter(lived) => write!(f, "stable-after={}: a gRPC call is not a connection", Compact(lived)),
            Self::Quantile(share) => write!(f, "hedge after {share} of attempts: gRPC's hedgingDelay is a fixed delay"),
        }
    }
}
