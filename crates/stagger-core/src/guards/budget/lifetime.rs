use super::BudgetError;
use super::BudgetProblem::{RatioAboveOne, RatioOfOne};
use crate::guards::guard::{Answer, Ask, End, Guard, Permit};
use crate::guards::now::Now;
use crate::guards::shards::Shards;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::ratio::{Ratio, share};
use crate::outcome::FailureKind;

/// Bounds the retries by a share of all attempts since the start, after a bootstrap.
///
/// ```text
/// reserve: attempts < bootstrap, or retries + 1 ≤ ratio · (attempts + 1)
/// ```
///
/// Units: attempts, the retries among them. Defaults: 10 %, a bootstrap of 100 attempts. Range: any share below 1,
/// exact in millionths.
///
/// Source: the per-client retry budget of "Site Reliability Engineering" (Beyer and others, 2016, chapter 21), which
/// does not specify the bootstrap.
///
/// # What it bounds
///
/// However many calls fail: N calls cause at most `max(bootstrap − 1, ⌊ratio / (1 − ratio) · N⌋)` retries. It never
/// forgets: after a million successful calls, 111 111 retries can be made at once.
///
/// Use it in programs that run for minutes: jobs, tools, functions. In programs that run for days use
/// [`Window`](super::Window).
///
/// # Cost
///
/// Lock-free, shared by reference; a call adds one to a counter that it shares with few other threads, or with none. It
/// never reads the clock. Its size is a kilobyte.
#[derive(Debug)]
pub struct Lifetime {
    ratio: Ratio,
    bootstrap: u32,
    calls: Shards,
    retries: AtomicU64,
}

/// A snapshot of a [`Lifetime`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LifetimeSnapshot {
    /// First attempts.
    pub calls: u64,
    /// Retries.
    pub retries: u64,
    /// How many retries these calls allow.
    pub allowed: u64,
}

impl Lifetime {
    const_unless_loom! {
        /// Creates a budget that allows this share of all attempts, once there have been `bootstrap` of them.
        ///
        /// # Errors
        /// A share of 1 or more.
        pub const fn with(ratio: Ratio, bootstrap: u32) -> Result<Self, BudgetError> {
            let error = BudgetError::of([
                (RatioAboveOne, ratio.is_above_one(), ratio.as_millionths() as u64),
                (RatioOfOne, ratio.as_millionths() == Ratio::ONE.as_millionths(), 0),
            ]);
            if error.is_none() { Ok(Self::unchecked(ratio, bootstrap)) } else { Err(error) }
        }

        /// Creates the default budget: 10 % after 100 attempts.
        #[must_use]
        pub const fn new() -> Self {
            Self::unchecked(Ratio::percent(10), 100)
        }

        const fn unchecked(ratio: Ratio, bootstrap: u32) -> Self {
            Self { ratio, bootstrap, calls: Shards::new(), retries: AtomicU64::new(0) }
        }
    }

    /// Returns a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> LifetimeSnapshot {
        let (retries, calls) = (self.retries.load(Ordering::Relaxed), self.calls.sum());
        LifetimeSnapshot { calls, retries, allowed: self.allowed(calls) }
    }

    /// Returns how many retries this many calls allow: the rule, solved for the retries.
    fn allowed(&self, calls: u64) -> u64 {
        let ratio = u64::from(self.ratio.as_millionths());
        // Not zero, since a share of 1 is rejected.
        let rest = u64::from(Ratio::ONE.as_millionths()) - ratio;
        share(calls, ratio, rest).max(u64::from(self.bootstrap).saturating_sub(calls))
    }
}

impl Default for Lifetime {
    fn default() -> Self {
        Self::new()
    }
}

impl Guard for Lifetime {
    fn name(&self) -> &'static str {
        "budget"
    }

    #[inline]
    fn ask(&self, ask: Ask, held: Permit, _: &dyn Now) -> Answer {
        if ask.is_first {
            self.calls.add();
        }
        Answer::Go(held)
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        let allowed = self.allowed(self.calls.sum());
        let spend = |retries| if retries < allowed { Some(retries + 1) } else { None };
        self.retries.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).ok()?;
        Some(Permit(1))
    }

    #[inline]
    fn settle(&self, permit: Permit, end: End<'_>, _: &dyn Now) {
        if end == End::NeverMade && permit != Permit::NONE {
            self.retries.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn available(&self) -> Option<u64> {
        let seen = self.snapshot();
        Some(seen.allowed.saturating_sub(seen.retries))
    }

    fn bounds_retries(&self) -> bool {
        true
    }

    fn is_at_rest(&self, _: &dyn Now) -> bool {
        // A new budget has its bootstrap, and earns the same share of each call as this one.
        let LifetimeSnapshot { retries, allowed, .. } = self.snapshot();
        retries.saturating_add(u64::from(self.bootstrap)) <= allowed
    }

    fn fresh(&self) -> Option<Self> {
        Some(Self::unchecked(self.ratio, self.bootstrap))
    }
}
