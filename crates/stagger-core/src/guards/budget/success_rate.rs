use super::BudgetError;
use super::BudgetProblem::{Attempts, RatioAboveOne, RatioOfZero};
use crate::guards::guard::{End, Guard, Permit};
use crate::guards::now::Now;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::ratio::Ratio;
use crate::outcome::{FailureKind, ServerHealth};

/// Rejects retries while too few of the last attempts succeeded.
///
/// ```text
/// reserve: succeeded(last n attempts) ≥ ratio · n, and nothing is taken
/// ```
///
/// Units: attempts, first ones and retries alike; those about which [nothing can be concluded](ServerHealth::Unknown)
/// do not count. Attempts that have not been made yet count as successes. Defaults: 90 % of the last 50. Range: n from
/// 1 to 64, any share above 0 and up to 1.
///
/// # What it bounds
///
/// With t = `⌊(1 − ratio) · n⌋`: of n attempts in a row at most t are failures that are retried, so N failing calls
/// cause at most t retries, and t more with every n − t successes: by default 5, and one more for nine successes.
/// Failures of kind [`FailureKind::LocalExhaustion`] are not counted, because they have not reached the server, so the
/// retries after them are bounded by the policy alone.
///
/// Use it where retries are optional: useful against an occasional failure, and harmful in an outage. Above a failure
/// rate of `1 − ratio` it grants none, and only first attempts restore it. It remembers a number of attempts and not a
/// length of time, so a client that makes few calls remembers for a long time.
///
/// # Cost
///
/// Lock-free, shared by reference; a success after n successes is one load. It never reads the clock.
#[derive(Debug)]
pub struct SuccessRate {
    ratio: Ratio,
    last: u32,
    /// The last attempts, the newest in the lowest bit; a success is a one. The bits above are ones.
    attempts: AtomicU64,
}

/// A snapshot of a [`SuccessRate`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuccessRateSnapshot {
    /// How many of the last attempts succeeded.
    pub succeeded: u32,
    /// How many recent attempts it considers.
    pub of: u32,
}

impl SuccessRate {
    const_unless_loom! {
        /// Creates a budget that rejects retries while fewer than this share of the `last` attempts succeeded.
        ///
        /// # Errors
        /// Every problem at once: a share of 0 or above 1, a number of attempts outside `1..=64`.
        pub const fn with(ratio: Ratio, last: u32) -> Result<Self, BudgetError> {
            let error = BudgetError::of([
                (RatioAboveOne, ratio.is_above_one(), ratio.as_millionths() as u64),
                (RatioOfZero, ratio.as_millionths() == 0, 0),
                (Attempts, last == 0 || last > u64::BITS, last as u64),
            ]);
            if error.is_none() { Ok(Self::unchecked(ratio, last)) } else { Err(error) }
        }

        /// Creates the default budget: 90 % of the last 50 attempts.
        #[must_use]
        pub const fn new() -> Self {
            Self::unchecked(Ratio::percent(90), 50)
        }

        const fn unchecked(ratio: Ratio, last: u32) -> Self {
            Self { ratio, last, attempts: AtomicU64::new(u64::MAX) }
        }
    }

    /// Returns a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> SuccessRateSnapshot {
        let failed = self.attempts.load(Ordering::Relaxed).count_zeros();
        SuccessRateSnapshot { succeeded: self.last - failed, of: self.last }
    }

    /// Returns how many of the last attempts may have failed.
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

/// The permit of a retry. Nothing is taken, but it tells the retries of a nested call from its first attempt.
const RETRY: Permit = Permit(1);

impl Guard for SuccessRate {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        let SuccessRateSnapshot { succeeded, of } = self.snapshot();
        if of - succeeded <= self.tolerated() { Some(RETRY) } else { None }
    }

    #[inline]
    fn settle(&self, _: Permit, end: End<'_>, _: &dyn Now) {
        let End::Made(outcome) = end else { return };
        let success = match outcome.verdict() {
            ServerHealth::Healthy => 1,
            ServerHealth::Ailing => 0,
            ServerHealth::Unknown => return,
        };
        let older = u64::MAX.checked_shl(self.last).unwrap_or(0);
        // If all are successes nothing is written, so that successes on many threads do not disturb each other.
        let _ = self.attempts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |attempts| {
            let new = attempts << 1 | success | older;
            if new == attempts { None } else { Some(new) }
        });
    }

    /// Returns how many failures in a row would still be retried.
    fn available(&self) -> Option<u64> {
        let SuccessRateSnapshot { succeeded, of } = self.snapshot();
        Some(u64::from(self.tolerated().saturating_sub(of - succeeded)))
    }

    fn bounds_retries(&self) -> bool {
        true
    }

    fn is_at_rest(&self, _: &dyn Now) -> bool {
        self.attempts.load(Ordering::Relaxed) == u64::MAX
    }

    fn needs_every_call(&self) -> bool {
        false
    }

    fn fresh(&self) -> Option<Self> {
        Some(Self::unchecked(self.ratio, self.last))
    }
}
