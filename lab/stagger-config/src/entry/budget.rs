use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;

/// What limits the retries of all calls together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RetryBudget {
    /// Nothing.
    Unlimited,
    /// At most this many retries at the same time.
    Concurrent(u32),
    /// At most this share of the active requests may be retries, but at least so many.
    ShareOfActive {
        /// Share, 0 to 1.
        ratio: f64,
        /// Number of retries that are always allowed at the same time.
        least: u32,
    },
    /// Retries are at most this share of the requests of a period, and so many more.
    Ratio {
        /// Share, 0 to 1 and above.
        ratio: f64,
        /// Retries per second that are always allowed.
        least_per_second: f64,
        /// The period.
        period: Duration,
    },
    /// Tokens that failures take and successes return; retries stop at half of them.
    Throttle {
        /// Maximum number of tokens, and the initial one.
        tokens: f64,
        /// What a success returns.
        ratio: f64,
    },
    /// Tokens that retries take and successes return.
    Tokens {
        /// Maximum number of tokens, and the initial one.
        capacity: u32,
    },
}

impl fmt::Display for RetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |ratio: f64| ratio * 100.0;
        match *self {
            Self::Unlimited => f.write_str("none"),
            Self::Concurrent(retries) => write!(f, "at most {retries} retries at once"),
            Self::ShareOfActive { ratio, least } => {
                write!(f, "{:.0}% of the active requests, at least {least} at once", percent(ratio))
            }
            Self::Ratio { ratio, least_per_second, period } => write!(
                f,
                "{}% of the requests of {}, at least {least_per_second}/s",
                (percent(ratio) * 1e6).round() / 1e6,
                Compact(period)
            ),
            Self::Throttle { tokens, ratio } => {
                write!(f, "{tokens} tokens, of which a failure takes one and a success returns {ratio}")
            }
            Self::Tokens { capacity } => write!(f, "{capacity} tokens"),
        }
    }
}
