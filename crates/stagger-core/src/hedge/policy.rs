use core::time::Duration;

use super::Latencies;
use crate::Ratio;

/// When a slow attempt gets a second copy, and how many there may be.
///
/// A copy is for the slow tail, not for failures: the first answer wins and the others are cancelled. It costs the server
/// work that may be thrown away, so it is paid from the same budget as a retry. Only for operations that may run twice.
///
/// Source: J. Dean, L. A. Barroso, "The Tail at Scale", 2013: with the delay at the 95th percentile the additional load is
/// about 5 %.
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

/// How long a copy waits for the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HedgeDelay {
    /// Always so long. Zero starts all copies at once.
    Fixed(Duration),
    /// As long as this share of attempts takes at most, and a fixed time until that is known.
    Quantile {
        /// The share. One, or more, is the longest that was seen.
        share: Ratio,
        /// Before 20 attempts have been counted.
        until_known: Duration,
    },
}

/// More than this is never right.
const MOST: u32 = 10;

impl Hedge {
    /// One copy, if the attempt takes longer than `delay`.
    #[must_use]
    pub const fn after(delay: Duration) -> Self {
        Self { delay: HedgeDelay::Fixed(delay), most: 1 }
    }

    /// One copy, if the attempt takes longer than this share of attempts; longer than `until_known` as long as fewer than
    /// 20 have been seen.
    #[must_use]
    pub const fn at_quantile(share: Ratio, until_known: Duration) -> Self {
        Self { delay: HedgeDelay::Quantile { share, until_known }, most: 1 }
    }

    /// At most `copies` besides the first attempt, each a delay after the one before it. Range 0 (none) to 10; more is 10.
    #[must_use]
    pub const fn with_max_copies(self, copies: u32) -> Self {
        Self { most: if copies > MOST { MOST } else { copies }, ..self }
    }

    /// How many copies there may be besides the first attempt.
    #[must_use]
    pub const fn max_copies(&self) -> u32 {
        self.most
    }

    /// How long a copy waits.
    #[must_use]
    pub const fn delay(&self) -> HedgeDelay {
        self.delay
    }

    /// How long a copy waits now, as far as it is known how long attempts take.
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
