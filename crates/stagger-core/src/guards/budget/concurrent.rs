use super::BudgetError;
use super::BudgetProblem::RatioAboveOne;
use crate::guards::guard::{Answer, Ask, End, Guard, Permit};
use crate::guards::now::Now;
use crate::guards::shards::Shards;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::ratio::Ratio;
use crate::outcome::FailureKind;

/// Bounds the concurrent retries by a share of the concurrent calls, with a minimum.
///
/// ```text
/// reserve: retries + 1 ≤ max(floor, ratio · active)
/// ```
///
/// A retry counts from the moment it is granted, so also during its backoff. Active calls are all of them: those in
/// their first attempt, those in a retry or waiting for one, and the one that requests the retry. So a call that begins
/// to retry does not lower the limit, and a client whose calls all fail keeps the floor.
///
/// Units: calls. Defaults: 20 %, floor 3. Range: any share up to 1, with which nothing is rejected.
///
/// Source: Envoy, `retry_budget` (`budget_percent`, `min_retry_concurrency`). Differs from it in: a call in its backoff
/// is active.
///
/// # What it bounds
///
/// Of N calls at the same time at most `max(floor, ⌊ratio · N⌋)` retry at the same time. It does not bound how many do
/// so in a row: fast failures are retried fast, so the policy's backoff bounds the rate.
///
/// Use it in proxies and servers with many calls at once. With few calls their number says little; use
/// [`Window`](super::Window).
///
/// # Cost
///
/// Lock-free, shared by reference; a call adds one to a counter that it shares with few other threads, or with none,
/// and takes it back. It never reads the clock. Its size is a kilobyte. Active calls are summed one counter after the
/// other, so a call that begins or ends in the meantime may or may not be counted; every call that is counted was
/// active at the time.
#[derive(Debug)]
pub struct Concurrent {
    ratio: Ratio,
    floor: u32,
    firsts: Shards,
    retries: AtomicU64,
}

/// A snapshot of a [`Concurrent`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConcurrentSnapshot {
    /// Calls in their first attempt.
    pub firsts: u64,
    /// Calls in a retry, or waiting for one.
    pub retries: u64,
}

const FIRST: Permit = Permit(1);
const RETRY: Permit = Permit(2);

impl Concurrent {
    const_unless_loom! {
        /// Creates a budget that allows this share of the active calls, or `floor` if that is more.
        ///
        /// # Errors
        /// A share above 1.
        pub const fn with(ratio: Ratio, floor: u32) -> Result<Self, BudgetError> {
            let error = BudgetError::of([(RatioAboveOne, ratio.is_above_one(), ratio.as_millionths() as u64)]);
            if error.is_none() { Ok(Self::unchecked(ratio, floor)) } else { Err(error) }
        }

        /// Creates the default budget: 20 %, and at least 3.
        #[must_use]
        pub const fn new() -> Self {
            Self::unchecked(Ratio::percent(20), 3)
        }

        const fn unchecked(ratio: Ratio, floor: u32) -> Self {
            Self { ratio, floor, firsts: Shards::new(), retries: AtomicU64::new(0) }
        }
    }

    /// Returns a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> ConcurrentSnapshot {
        ConcurrentSnapshot { firsts: self.firsts.sum(), retries: self.retries.load(Ordering::Relaxed) }
    }

    /// Returns how many concurrent retries are allowed with this many active calls.
    fn allowed(&self, active: u64) -> u64 {
        self.ratio.of(active).max(u64::from(self.floor))
    }
}

impl Default for Concurrent {
    fn default() -> Self {
        Self::new()
    }
}

impl Guard for Concurrent {
    fn name(&self) -> &'static str {
        "budget"
    }

    #[inline]
    fn ask(&self, ask: Ask, held: Permit, _: &dyn Now) -> Answer {
        if !ask.is_first {
            return Answer::Go(held);
        }
        self.firsts.add();
        Answer::Go(FIRST)
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        // The call that requests the retry is no longer in its attempt.
        let firsts = self.firsts.sum().saturating_add(1);
        let spend = |retries| {
            let allowed = self.allowed(firsts.saturating_add(retries));
            if retries < allowed { Some(retries + 1) } else { None }
        };
        self.retries.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).ok()?;
        Some(RETRY)
    }

    #[inline]
    fn settle(&self, permit: Permit, _: End<'_>, _: &dyn Now) {
        match permit {
            FIRST => self.firsts.take_back(),
            RETRY => {
                self.retries.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    fn available(&self) -> Option<u64> {
        let ConcurrentSnapshot { firsts, retries } = self.snapshot();
        Some(self.allowed(firsts.saturating_add(retries)).saturating_sub(retries))
    }

    fn bounds_retries(&self) -> bool {
        true
    }

    fn is_at_rest(&self, _: &dyn Now) -> bool {
        self.snapshot() == ConcurrentSnapshot { firsts: 0, retries: 0 }
    }

    fn fresh(&self) -> Option<Self> {
        Some(Self::unchecked(self.ratio, self.floor))
    }
}
