use super::BudgetError;
use super::BudgetProblem::{Attempts, RatioAboveOne, RatioOfZero};
use crate::guard::Now;
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Budget, FailureKind, Outcome, Ratio, guard::BudgetPermit, guard::ServerHealth};

/// No retries while too few of the last attempts succeeded.
///
/// ```text
/// try_acquire: succeeded(last n attempts) ≥ ratio · n, and nothing is taken
/// ```
///
/// Units: attempts, first ones and retries alike; those about which [nothing can be concluded](ServerHealth::Unknown) do
/// not count. What has not happened yet counts as success. Defaults: 90 % of the last 50. Range: n from 1 to 64, any
/// share above 0 and up to 1.
///
/// # What it bounds
///
/// With t = `⌊(1 − ratio) · n⌋`: of n attempts in a row at most t are failures that are retried, so N failing calls
/// cause at most t retries, and t more with every n − t successes: by default 5, and one more for nine successes.
/// Failures of our own ([`FailureKind::LocalExhaustion`]) are not counted, so the retries after them are bounded by the policy alone;
/// they have not reached the server.
///
/// Use it where retries are a nicety, good against the odd failure and harmful when anything is wrong: above a
/// failure rate of `1 − ratio` it leaves none, and first attempts alone bring it back. It remembers a number of
/// attempts and no length of time, so a client that makes few calls remembers for long.
///
/// # Cost
///
/// Lock-free, shared by reference; a success after n successes is one load. It never reads the clock.
#[derive(Debug)]
pub struct SuccessRate {
    ratio: Ratio,
    last: u32,
    /// The last attempts, the newest in the lowest bit; a success is a one. Those above are ones.
    attempts: AtomicU64,
}

/// What a [`SuccessRate`] holds, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuccessRateSnapshot {
    /// How many of the last attempts succeeded.
    pub succeeded: u32,
    /// How many attempts it looks back on.
    pub of: u32,
}

impl SuccessRate {
    const_unless_loom! {
        /// No retries while fewer than this share of the last so many attempts succeeded.
        ///
        /// # Errors
        /// Every fault at once: a share of 0 or above 1, a number of attempts outside `1..=64`.
        pub const fn with(ratio: Ratio, last: u32) -> Result<Self, BudgetError> {
            let checked = BudgetError::check([
                (RatioAboveOne, ratio.is_above_one(), ratio.as_millionths() as u64),
                (RatioOfZero, ratio.as_millionths() == 0, 0),
                (Attempts, last == 0 || last > u64::BITS, last as u64),
            ]);
            match checked {
                Ok(()) => Ok(Self::unchecked(ratio, last)),
                Err(error) => Err(error),
            }
        }

        /// The default: 90 % of the last 50.
        #[must_use]
        pub const fn new() -> Self {
            Self::unchecked(Ratio::percent(90), 50)
        }

        const fn unchecked(ratio: Ratio, last: u32) -> Self {
            Self { ratio, last, attempts: AtomicU64::new(u64::MAX) }
        }
    }

    /// What it has counted now.
    #[must_use]
    pub fn snapshot(&self) -> SuccessRateSnapshot {
        let failed = self.attempts.load(Ordering::Relaxed).count_zeros();
        SuccessRateSnapshot { succeeded: self.last - failed, of: self.last }
    }

    /// How many of the last attempts may have failed.
    fn tolerated(&self) -> u32 {
        let rest = Ratio::ONE.as_millionths() - self.ratio.as_millionths();
        // Fewer than 64.
        Ratio::millionths(rest).of(u64::from(self.last)) as u32
    }
}

impl Default for SuccessRate {
    fn default() -> Self {
        Self::new()
    }
}

impl Budget for SuccessRate {
    fn try_acquire(&self, _: FailureKind, _: &dyn Now) -> Option<BudgetPermit> {
        let SuccessRateSnapshot { succeeded, of } = self.snapshot();
        (of - succeeded <= self.tolerated()).then_some(BudgetPermit::NONE)
    }

    #[inline]
    fn record(&self, _: BudgetPermit, outcome: &Outcome, _: &dyn Now) {
        let success = match outcome.verdict() {
            ServerHealth::Healthy => 1,
            ServerHealth::Ailing => 0,
            ServerHealth::Unknown => return,
        };
        let older = u64::MAX.checked_shl(self.last).unwrap_or(0);
        // All successes stay as they are, so that successes on many threads do not disturb each other.
        let _ = self.attempts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |attempts| {
            let new = attempts << 1 | success | older;
            (new != attempts).then_some(new)
        });
    }

    fn release(&self, _: BudgetPermit) {}

    /// How many failures in a row would still be retried.
    fn available(&self) -> Option<u64> {
        let SuccessRateSnapshot { succeeded, of } = self.snapshot();
        Some(u64::from(self.tolerated().saturating_sub(of - succeeded)))
    }
}
