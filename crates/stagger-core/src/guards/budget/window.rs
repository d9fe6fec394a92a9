use core::time::Duration;

use super::BudgetError;
use super::BudgetProblem::{RatioAboveOne, WindowLength};
use super::slots::{Slots, Spent, slot};
use crate::guards::guard::{Answer, Ask, End, Guard, Permit};
use crate::guards::now::Now;
use crate::numbers::atomic::const_unless_loom;
use crate::numbers::instant::{Instant, nanos};
use crate::numbers::ratio::Ratio;
use crate::outcome::FailureKind;

/// Bounds the retries by a share of the calls over a sliding window, plus a minimum per second.
///
/// ```text
/// reserve: retries(ttl) + 1 ≤ ratio · calls(ttl) + min_per_second · ttl
/// ```
///
/// Units: calls and retries; the share is exact in millionths, so 0.75 is three retries in four calls. Defaults: ttl 10
/// s, ratio 20 %, 10 per second, so a client without traffic has 100 retries. Range: ttl 1 s to 60 s.
///
/// The window has ten slots of a tenth of the ttl. A call or retry counts in its slot and the nine after it: for
/// between nine tenths of the ttl and the whole.
///
/// Source: Finagle, `RetryBudget`. Differs from it in: its shares are exact where `1 / ratio` is not a whole number of
/// thousandths, and a share above 100 % is rejected.
///
/// # What it bounds
///
/// In the window that ends with any retry: N calls cause at most `⌊ratio · N + min_per_second · ttl⌋` retries, that one
/// included, in whatever order they come and however many fail. Without a minimum, at most `⌊ratio · N⌋`, always.
///
/// Use it for services and busy clients: it states directly that retries add "at most 20 % more load", and it recovers
/// with time. With little traffic the minimum dominates: set it lower for many small clients, because each of them has
/// it.
///
/// # Cost
///
/// Lock-free, shared by reference, no work proportional to the time that has passed. The clock is read for every call
/// and every retry. A call adds one to a counter that all threads share.
#[derive(Debug)]
pub struct Window {
    settings: WindowBuilder,
    calls: Slots<SLOTS>,
    retries: Spent<SLOTS>,
}

/// Builds a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct WindowBuilder {
    ttl: u64,
    ratio: Ratio,
    min_per_second: u32,
}

/// A snapshot of a [`Window`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowSnapshot {
    /// Calls in the window.
    pub calls: u64,
    /// Retries in the window.
    pub retries: u64,
    /// How many retries these calls allow.
    pub allowed: u64,
}

/// A model of every interleaving has to be small.
const SLOTS: usize = if cfg!(loom) { 2 } else { 10 };
const SECOND: u64 = 1_000_000_000;

impl Window {
    /// Creates a builder with the default settings.
    pub const fn builder() -> WindowBuilder {
        WindowBuilder { ttl: 10 * SECOND, ratio: Ratio::percent(20), min_per_second: 10 }
    }

    const_unless_loom! {
        /// Creates a window with the default settings.
        #[must_use]
        pub const fn new() -> Self {
            Self::builder().opened()
        }
    }

    /// Returns a snapshot as of `now`.
    #[must_use]
    pub fn snapshot(&self, now: Instant) -> WindowSnapshot {
        self.look(self.slot(now))
    }

    fn look(&self, slot: u64) -> WindowSnapshot {
        WindowSnapshot { calls: self.calls.sum(slot), retries: self.retries.sum(slot), allowed: self.allowed(slot) }
    }

    /// Returns how many retries the calls in the window allow.
    fn allowed(&self, slot: u64) -> u64 {
        let WindowBuilder { ttl, ratio, min_per_second } = self.settings;
        // One sum, so that two halves make a whole.
        let share = u128::from(self.calls.sum(slot)) * u128::from(ratio.as_millionths()) * u128::from(SECOND);
        let reserve = u128::from(min_per_second) * u128::from(ttl) * u128::from(Ratio::ONE.as_millionths());
        let whole = u128::from(Ratio::ONE.as_millionths()) * u128::from(SECOND);
        // Each term is below 2^38.
        ((share + reserve) / whole) as u64
    }

    fn slot(&self, now: Instant) -> u64 {
        slot(now, self.settings.ttl / SLOTS as u64)
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::new()
    }
}

impl Guard for Window {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn ask(&self, ask: Ask, held: Permit, now: &dyn Now) -> Answer {
        if ask.is_first {
            self.calls.add(self.slot(now.now()));
        }
        Answer::Go(held)
    }

    fn reserve(&self, _: FailureKind, now: &dyn Now) -> Option<Permit> {
        let slot = self.retries.spend(self.slot(now.now()), |slot| self.allowed(slot))?;
        Some(Permit(slot + 1))
    }

    #[inline]
    fn settle(&self, Permit(permit): Permit, end: End<'_>, _: &dyn Now) {
        if let (End::NeverMade, Some(slot)) = (end, permit.checked_sub(1)) {
            self.retries.take_back(slot);
        }
    }

    /// Returns how many retries were available at the last call or request.
    fn available(&self) -> Option<u64> {
        let seen = self.look(self.calls.newest().max(self.retries.newest()));
        Some(seen.allowed.saturating_sub(seen.retries))
    }

    fn bounds_retries(&self) -> bool {
        true
    }

    fn is_at_rest(&self, now: &dyn Now) -> bool {
        self.retries.sum(self.slot(now.now())) == 0
    }

    fn fresh(&self) -> Option<Self> {
        Some(self.settings.opened())
    }
}

impl WindowBuilder {
    /// Sets how long a call counts. Default: 10 s. Range: 1 s to 60 s.
    pub const fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: nanos(ttl), ..self }
    }

    /// Sets how many retries each call allows. Default: 20 %.
    pub const fn ratio(self, ratio: Ratio) -> Self {
        Self { ratio, ..self }
    }

    /// Sets how many retries per second are allowed in addition. Default: 10. With a ratio of 0 and a minimum of 0
    /// there are no retries at all.
    pub const fn min_per_second(self, retries: u32) -> Self {
        Self { min_per_second: retries, ..self }
    }

    const_unless_loom! {
        /// Creates the window.
        ///
        /// # Errors
        /// Every problem at once: a ttl outside 1 s to 60 s, a ratio above 1.
        pub const fn build(self) -> Result<Window, BudgetError> {
            let error = BudgetError::of([
                (WindowLength, self.ttl < SECOND || self.ttl > 60 * SECOND, self.ttl),
                (RatioAboveOne, self.ratio.is_above_one(), self.ratio.as_millionths() as u64),
            ]);
            if error.is_none() { Ok(self.opened()) } else { Err(error) }
        }

        const fn opened(self) -> Window {
            Window { settings: self, calls: Slots::new(), retries: Spent::new() }
        }
    }
}
