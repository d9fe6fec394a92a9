//! What a decision asks besides the policy: budgets, circuit breakers, and the permits that they hand out.

use core::cell::Cell;
use core::fmt;
use core::time::Duration;

use crate::Instant;
pub use crate::outcome::ServerHealth;
use crate::outcome::{FailureKind, Outcome};

/// The present, read from the driver's clock at most once per decision, and only if somebody asks.
pub trait Now {
    /// The present instant; the same one however often it is asked.
    fn now(&self) -> Instant;
}

/// An instant is its own present: for tests, and for drivers that have read their clock already.
impl Now for Instant {
    fn now(&self) -> Instant {
        *self
    }
}

/// A clock that has not been read yet.
pub(crate) struct Unread<F> {
    read: Cell<Option<F>>,
    seen: Cell<Instant>,
}

impl<F: FnOnce() -> Instant> Unread<F> {
    #[inline]
    pub(crate) const fn new(read: F) -> Self {
        Self { read: Cell::new(Some(read)), seen: Cell::new(Instant::ZERO) }
    }
}

impl<F: FnOnce() -> Instant> Now for Unread<F> {
    #[inline]
    fn now(&self) -> Instant {
        if let Some(read) = self.read.take() {
            self.seen.set(read());
        }
        self.seen.get()
    }
}

/// The shared allowance for retries: it bounds the retries of all calls together, which no backoff can.
///
/// The budget pays *before* the sleep, so that a thousand sleepers cannot wake up to an empty purse together. What it
/// lends is settled exactly once: [`release`](Self::release) if the attempt was never made, else
/// [`record`](Self::record) with what came of it. Implementations take `&self` and are shared by every call to a target.
pub trait Budget: fmt::Debug + Send + Sync {
    /// The first attempt of a call is about to be made. It is never refused; budgets that count attempts or calls in
    /// flight begin to count here. The loan is settled like that of a retry.
    fn on_first_attempt(&self, now: &dyn Now) -> BudgetPermit {
        let _ = now;
        BudgetPermit::NONE
    }

    /// Asks for one retry after a failure of this kind. `None` is a refusal. What shall come back through
    /// [`release`](Self::release) is another loan than [`BudgetPermit::NONE`].
    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit>;

    /// An attempt for which `loan` was lent came to its end.
    fn record(&self, permit: BudgetPermit, outcome: &Outcome, now: &dyn Now);

    /// The attempt for which `loan` was lent was never made.
    fn release(&self, permit: BudgetPermit);

    /// What is left, in retries, for events and metrics; `None` if it cannot be told as a number.
    fn available(&self) -> Option<u64> {
        None
    }

    /// Whether it is no bound at all. Layers that share such a budget are not bounded together, so the inner one
    /// [stands down](NestedRetries::ShareBudget). Default: it is one.
    fn is_unlimited(&self) -> bool {
        false
    }
}

/// Keeps calls away from a server that is known to be down.
///
/// A pass is settled exactly once by [`record`](Self::record); [`Outcome::Cancelled`] stands for an attempt that was
/// not brought to its end, and counts as neither success nor failure.
pub trait Breaker: fmt::Debug + Send + Sync {
    /// May an attempt start now? A half-open breaker counts its probes here.
    ///
    /// # Errors
    /// [`BreakerOpen`] tells how long it stays open.
    fn admit(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen>;

    /// How long it stays open; zero if it would admit an attempt now. A peek: it changes nothing.
    fn retry_in(&self, now: &dyn Now) -> Duration;

    /// Whether an attempt that starts `after` from now would be refused. A peek: it changes nothing.
    fn would_reject(&self, after: Duration, now: &dyn Now) -> bool;

    /// An attempt for which `pass` was given came to its end.
    fn record(&self, permit: BreakerPermit, outcome: &Outcome, now: &dyn Now);

    /// Whether its refusals are kept to, from now on: the operator control for incidents. A breaker that cannot be moved ignores it,
    /// which is what this does unless it is written anew.
    fn set_enforcement(&self, enforcement: Enforcement) {
        let _ = enforcement;
    }
}

/// Whether the refusals of a breaker are kept to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Enforcement {
    /// They are.
    #[default]
    Enforced,
    /// Nothing is refused; what would have been is counted.
    Observed,
    /// Nothing is refused, and nothing is counted of what would have been.
    Off,
}

impl Enforcement {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Enforced, Self::Observed, Self::Off];

    /// It as one lower-case word, for metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Observed => "observed",
            Self::Off => "off",
        }
    }
}

/// The refusal of an open circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerOpen {
    /// How long it stays open. A retry around this call takes it as a hint.
    pub retry_in: Duration,
}

impl fmt::Display for BreakerOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this client's own circuit breaker is open for another {:.1}", crate::text::Compact(self.retry_in))
    }
}

impl core::error::Error for BreakerOpen {}

/// What a budget has lent for one attempt: a number whose meaning is the budget's own.
///
/// Neither `Copy` nor `Clone`, so that it is settled once.
#[derive(Debug, PartialEq, Eq)]
pub struct BudgetPermit(pub u64);

impl BudgetPermit {
    /// Nothing was lent: there is nothing to give back, and only [`record`](Budget::record) hears of it.
    pub const NONE: Self = Self(0);
}

/// What a breaker has given for one attempt: a number whose meaning is the breaker's own.
///
/// Neither `Copy` nor `Clone`, so that it is recorded once.
#[derive(Debug, PartialEq, Eq)]
pub struct BreakerPermit(pub u64);

impl BreakerPermit {
    /// Nothing was given.
    pub const NONE: Self = Self(0);
}

/// What the guards have lent for one attempt.
///
/// The driver holds it between [`begin`](crate::machine::RetryMachine::begin) and [`decide`](crate::machine::RetryMachine::decide), and between
/// `decide` and the next `begin`. Whoever drops a call in between settles it with [`Guards::release`] after `decide`,
/// with [`Guards::abandon`] in the attempt, and with [`Guards::release_begun`] between `begin` and an attempt that is not made.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a permit that is not handed on is never settled"]
pub struct Permits {
    pub(crate) budget: BudgetPermit,
    pub(crate) breaker: BreakerPermit,
}

impl Permits {
    /// Nothing was lent: what the first `begin` of a call is given.
    pub const NONE: Self = Self { budget: BudgetPermit::NONE, breaker: BreakerPermit::NONE };

    /// Takes it out of `slot`, leaving nothing there.
    pub const fn take(slot: &mut Self) -> Self {
        core::mem::replace(slot, Self::NONE)
    }
}

/// Whether a call retries if it is made inside an attempt of another call.
///
/// With three attempts in each of three layers and a persistent failure, the innermost operation runs
///
/// | | times |
/// |---|---|
/// | [`Disable`](Self::Disable) | 3 |
/// | [`ShareBudget`](Self::ShareBudget) | 3, plus the retries that the shared budget grants |
/// | [`Allow`](Self::Allow) | 27 |
///
/// The driver resolves it for each call: [`Guards::nested`] is [`Allow`](Self::Allow) if there is no outer attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NestedRetries {
    /// The call makes one attempt and leaves retrying to the outer layer. The default.
    #[default]
    Disable,
    /// The call retries, and one budget bounds the retries of both layers: give the same budget to both.
    ///
    /// The call's first attempt is part of the outer layer's attempt, so the budget counts it once. Without a budget,
    /// or with one that is [unlimited](Budget::is_unlimited), this is the same as [`Disable`](Self::Disable).
    ShareBudget,
    /// The call retries as if there were no outer layer: the attempts multiply.
    Allow,
}

/// What a decision asks besides the policy. None of it is needed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Guards<'a> {
    /// The shared allowance for retries.
    pub budget: Option<&'a dyn Budget>,
    /// What keeps calls away from a server that is down.
    pub breaker: Option<&'a dyn Breaker>,
    /// Whether an outer layer is already retrying.
    pub nested: NestedRetries,
}

impl Default for Guards<'_> {
    fn default() -> Self {
        Self::none()
    }
}

impl<'a> Guards<'a> {
    /// No guard at all.
    #[inline]
    #[must_use]
    pub const fn none() -> Self {
        Self { budget: None, breaker: None, nested: NestedRetries::Allow }
    }

    /// These guards, with this budget.
    #[inline]
    #[must_use]
    pub const fn budget(mut self, budget: &'a dyn Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// These guards, with this breaker.
    #[inline]
    #[must_use]
    pub const fn breaker(mut self, breaker: &'a dyn Breaker) -> Self {
        self.breaker = Some(breaker);
        self
    }

    /// These guards, told whether an outer layer is already retrying.
    #[inline]
    #[must_use]
    pub const fn nested(mut self, nested: NestedRetries) -> Self {
        self.nested = nested;
        self
    }

    /// Whether nobody is asked; an outer layer may still be at work.
    #[inline]
    #[must_use]
    pub const fn is_unguarded(&self) -> bool {
        self.budget.is_none() && self.breaker.is_none()
    }

    /// Whether retrying is left to an outer layer.
    #[inline]
    pub(crate) fn stand_down(&self) -> bool {
        match self.nested {
            NestedRetries::Allow => false,
            NestedRetries::Disable => true,
            NestedRetries::ShareBudget => self.budget.is_none_or(Budget::is_unlimited),
        }
    }

    /// Tells the budget that the first attempt of a call begins, unless it knows of it from the layer outside.
    #[inline]
    pub(crate) fn on_first_attempt(&self, now: &dyn Now) -> BudgetPermit {
        match (self.budget, self.nested) {
            (None, _) | (_, NestedRetries::ShareBudget) => BudgetPermit::NONE,
            (Some(budget), _) => budget.on_first_attempt(now),
        }
    }

    /// The attempt for which `permit` was lent was never made: the call was cancelled while it slept.
    #[inline]
    pub fn release(&self, permits: Permits) {
        if let (Some(budget), true) = (self.budget, permits.budget != BudgetPermit::NONE) {
            budget.release(permits.budget);
        }
    }

    /// The attempt for which `permit` was lent was made, and dropped before its end.
    #[inline]
    pub fn abandon(&self, permits: Permits, now: impl FnOnce() -> Instant) {
        self.record(permits, &Outcome::Cancelled, &Unread::new(now));
    }

    /// The attempt for which `permit` was lent was let in, and then not made.
    #[inline]
    pub fn release_begun(&self, permits: Permits, now: impl FnOnce() -> Instant) {
        let Permits { budget, breaker: probe } = permits;
        if let Some(breaker) = self.breaker {
            breaker.record(probe, &Outcome::Cancelled, &Unread::new(now));
        }
        self.release(Permits { budget, ..Permits::NONE });
    }

    /// Step 1 of the decision: tells everyone what happened.
    #[inline]
    pub(crate) fn record(&self, permits: Permits, outcome: &Outcome, now: &dyn Now) {
        if let Some(breaker) = self.breaker {
            breaker.record(permits.breaker, outcome, now);
        }
        let is_outer = self.nested == NestedRetries::ShareBudget && permits.budget == BudgetPermit::NONE;
        if let (Some(budget), false) = (self.budget, is_outer) {
            budget.record(permits.budget, outcome, now);
        }
    }
}
