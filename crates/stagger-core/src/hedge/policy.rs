use core::time::Duration;

use super::Latencies;
use crate::numbers::ratio::Ratio;

/// When a slow attempt gets a second copy, and how many copies it may get.
///
/// Copies are for the slow tail of latencies, not for failures: the first answer wins and the other attempts are
/// cancelled. A copy costs the server work that may be thrown away, so it is charged to the same budget as a retry. Use
/// it only for operations that may run twice.
///
/// Source: J. Dean, L. A. Barroso, "The Tail at Scale", 2013: with the delay at the 95th percentile the additional load
/// is about 5 %.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{hedge::Hedge, Ratio};
///
/// const FIXED: Hedge = Hedge::after(Duration::from_millis(200));
/// const TAIL: Hedge = Hedge::at_quantile(Ratio::percent(95), Duration::from_millis(200)).with_max_copies(2);
/// assert_eq!((FIXED.max_copies(), TAIL.max_copies()), (1, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedge {
    delay: HedgeDelay,
    most: u32,
}

/// How long a copy waits for the attempts before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HedgeDelay {
    /// A fixed delay. Zero starts all copies at once.
    Fixed(Duration),
    /// A quantile of the latencies, or a fixed delay until that is known.
    Quantile {
        /// The share of attempts that take at most the delay. One, or more, is the longest latency seen.
        share: Ratio,
        /// The delay until 20 attempts have been recorded.
        until_known: Duration,
    },
}

/// The maximum number of copies; more is never right.
const MOST: u32 = 10;

impl Hedge {
    /// Creates a hedge with one copy, launched if the attempt takes longer than `delay`.
    #[must_use]
    pub const fn after(delay: Duration) -> Self {
        Self { delay: HedgeDelay::Fixed(delay), most: 1 }
    }

    /// Creates a hedge with one copy, launched if the attempt takes longer than this share of attempts, or longer than
    /// `until_known` until 20 have been recorded.
    #[must_use]
    pub const fn at_quantile(share: Ratio, until_known: Duration) -> Self {
        Self { delay: HedgeDelay::Quantile { share, until_known }, most: 1 }
    }

    /// Sets the maximum number of copies besides the first attempt, each a delay after the one before it. Range: 0
    /// (none) to 10; more counts as 10.
    #[must_use]
    pub const fn with_max_copies(self, copies: u32) -> Self {
        Self { most: if copies > MOST { MOST } else { copies }, ..self }
    }

    /// Returns the maximum number of copies besides the first attempt.
    #[must_use]
    pub const fn max_copies(&self) -> u32 {
        self.most
    }

    /// Returns how long a copy waits.
    #[must_use]
    pub const fn delay(&self) -> HedgeDelay {
        self.delay
    }

    /// Returns how long a copy waits now, given the latencies recorded so far.
    #[must_use]
    pub fn delay_now(&self, seen: Option<&Latencies>) -> Duration {
        match self.delay {
            HedgeDelay::Fixed(delay) => delay,
            HedgeDelay::Quantile { share, until_known } => {
                seen.and_then(|latencies| latencies.quantile(share)).unwrap_or(until_known)
            }
        }
    }
}
