use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use stagger::text::Compact;
use stagger::{HintMode, Jitter, Ratio};

/// Something that a policy says and a service config cannot. As text: the setting, what gRPC does, and what can be done.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Unmapped {
    /// Another jitter than gRPC's ±20 %.
    Jitter(Jitter),
    /// More attempts than five, or no limit.
    MaxAttempts(Option<NonZeroU32>),
    /// A least delay.
    Floor(Duration),
    /// A wait before the first attempt.
    Spread(Duration),
    /// A limit on the time after which no retry starts.
    MaxElapsed(Duration),
    /// What is made of a hint.
    HintMode(HintMode),
    /// The longest hint that is followed.
    MaxHint(Option<Duration>),
    /// A base of its own after throttling.
    ThrottledBase(Duration),
    /// A base of its own after our own exhaustion.
    LocalBase(Duration),
    /// What a connection must have lived for.
    StableAfter(Duration),
    /// A hedge that waits for a share of attempts.
    Quantile(Ratio),
}

impl fmt::Display for Unmapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Jitter(jitter) => write!(f, "jitter={jitter}: gRPC draws within ±20% of the ceiling"),
            Self::MaxAttempts(Some(attempts)) => write!(f, "max-attempts={attempts}: gRPC makes 5 at most"),
            Self::MaxAttempts(None) => f.write_str("max-attempts=inf: gRPC makes 5 at most"),
            Self::Floor(floor) => write!(f, "floor={}: gRPC has no least delay", Compact(floor)),
            Self::Spread(spread) => write!(f, "spread={}: gRPC makes the first attempt at once", Compact(spread)),
            Self::MaxElapsed(limit) => {
                write!(f, "max-elapsed={}: give the call a deadline, which ends its last attempt too", Compact(limit))
            }
            Self::HintMode(mode) => write!(f, "hint={mode}: gRPC waits exactly as long as a pushback says"),
            Self::MaxHint(Some(longest)) => {
                write!(
                    f,
                    "max-hint={}: gRPC waits as long as a pushback says, and the deadline lets it",
                    Compact(longest)
                )
            }
            Self::MaxHint(None) => f.write_str("max-hint=inf: read back, the policy has the limit of this library"),
            Self::ThrottledBase(base) => {
                write!(f, "throttled-base={}: gRPC waits no longer after RESOURCE_EXHAUSTED", Compact(base))
            }
            Self::LocalBase(base) => write!(f, "local-base={}: gRPC knows no exhaustion of its own", Compact(base)),
            Self::StableAfter(lived) => write!(f, "stable-after={}: gRPC's calls are no connections", Compact(lived)),
            Self::Quantile(share) => write!(f, "hedge after {share} of attempts: gRPC's hedgingDelay is fixed"),
        }
    }
}
