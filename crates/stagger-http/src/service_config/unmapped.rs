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
        let timed = |name: &str, duration| format!("{name}={}", Compact(duration));
        let (setting, instead) = match *self {
            Self::Jitter(jitter) => (format!("jitter={jitter}"), "gRPC draws within ±20% of the ceiling"),
            Self::MaxAttempts(Some(attempts)) => (format!("max-attempts={attempts}"), "gRPC makes at most 5"),
            Self::MaxAttempts(None) => ("max-attempts=inf".to_owned(), "gRPC makes at most 5"),
            Self::Floor(floor) => (timed("floor", floor), "gRPC has no minimum delay"),
            Self::Spread(spread) => (timed("spread", spread), "gRPC makes the first attempt immediately"),
            Self::MaxElapsed(limit) => {
                (timed("max-elapsed", limit), "set a deadline on the call, which also ends its last attempt")
            }
            Self::HintMode(mode) => (format!("hint={mode}"), "gRPC waits for exactly the duration of a pushback"),
            Self::MaxHint(Some(longest)) => {
                (timed("max-hint", longest), "gRPC waits for the duration of a pushback, limited only by the deadline")
            }
            Self::MaxHint(None) => {
                ("max-hint=inf".to_owned(), "parsed again, the policy has the default limit of this library")
            }
            Self::ThrottledBase(base) => {
                (timed("throttled-base", base), "gRPC waits no longer after RESOURCE_EXHAUSTED")
            }
            Self::LocalBase(base) => (timed("local-base", base), "gRPC does not distinguish local exhaustion"),
            Self::StableAfter(lived) => (timed("stable-after", lived), "a gRPC call is not a connection"),
            Self::Quantile(share) => {
                (format!("hedge after {share} of attempts"), "gRPC's hedgingDelay is a fixed delay")
            }
        };
        write!(f, "{setting}: {instead}")
    }
}
