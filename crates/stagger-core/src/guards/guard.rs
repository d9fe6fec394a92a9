//! Guards: budgets and circuit breakers, which calls share, and the permits that they issue.

use core::fmt;
use core::time::Duration;

use super::now::Unread;
use crate::numbers::instant::Instant;
use crate::numbers::message::words;
use crate::outcome::{FailureKind, Outcome};

#[cfg(target_has_atomic = "64")]
pub use super::hold::LimiterMode;
pub use super::now::Now;
pub use crate::outcome::ServerHealth;

/// A shared allowance for retries. It bounds the retries of all calls together, which backoff cannot.
///
/// The budget grants a permit *before* the sleep, so that many sleeping calls cannot wake up together to a budget that
/// is used up. Each permit is settled exactly once: by [`release`](Self::release) if the attempt was never made,
/// otherwise by [`record`](Self::record) with its outcome. Implementations take `&self` and are shared by all calls to
/// a target.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a retry budget",
    label = "expected a type that implements `Budget`",
    note = "a retrier owns its budget: pass it by value, or share it as an `Arc` with `.shared_budget(..)`"
)]
pub trait Budget: fmt::Debug + Send + Sync {
    /// Records that the first attempt of a call is about to be made, and returns its permit. A first attempt is never
    /// rejected. Budgets that count attempts or calls in flight count it here. The permit is settled like that of a
    /// retry. Default: returns [`BudgetPermit::NONE`].
    fn on_first_attempt(&self, now: &dyn Now) -> BudgetPermit {
        let _ = now;
        BudgetPermit::NONE
    }

    /// Acquires a permit for one retry after a failure of this kind, or returns `None` if the budget rejects the retry.
    /// A permit that [`release`](Self::release) is to give back must differ from [`BudgetPermit::NONE`].
    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit>;

    /// Records the outcome of the attempt that `permit` was granted for.
    fn record(&self, permit: BudgetPermit, outcome: &Outcome, now: &dyn Now);

    /// Releases the permit of an attempt that was never made.
    fn release(&self, permit: BudgetPermit);

    /// Returns how many retries are available now, for events and metrics; `None` (the default) if the budget has no
    /// such number.
    fn available(&self) -> Option<u64> {
        None
    }

    /// Returns whether the budget never rejects a retry. Layers that share such a budget are not bounded together, so
    /// the inner layer [does not retry](NestedRetries::ShareBudget). Default: false.
    fn is_unlimited(&self) -> bool {
        false
    }

    /// Returns whether the budget has nothing to remember: a new one with the same settings would grant no retry that
    /// this one would reject. A collection of budgets by key can then replace it. Default: false.
    fn is_at_rest(&self, now: &dyn Now) -> bool {
        let _ = now;
        false
    }

    /// Returns whether the budget must be told of every call. If not, a client that has one budget per target creates a
    /// target's budget when a call to it fails, and removes it when it is [at rest](Self::is_at_rest) again.
    ///
    /// Return false only if [`on_first_attempt`](Self::on_first_attempt) always returns [`BudgetPermit::NONE`] and
    /// changes nothing, and if [`record`](Self::record) with that permit changes nothing for [`Outcome::Cancelled`],
    /// nor, while the budget is at rest, for an outcome that shows a [healthy](ServerHealth::Healthy) server. Default:
    /// true.
    fn needs_every_call(&self) -> bool {
        true
    }

    /// Returns a new budget with the same settings, for clients that have one budget per target; `None` (the default)
    /// if the targets are to share this one.
    fn fresh(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// A circuit breaker: rejects calls to a server that is known to be down.
///
/// Each permit is settled exactly once by [`record`](Self::record). For an attempt that was not completed the outcome
/// is [`Outcome::Cancelled`], which counts neither as success nor as failure.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a circuit breaker",
    label = "expected a type that implements `Breaker`",
    note = "a retrier owns its breaker: pass it by value, or share it as an `Arc` with `.shared_breaker(..)`"
)]
pub trait Breaker: fmt::Debug + Send + Sync {
    /// Admits an attempt, or rejects it. A half-open breaker counts its probes here.
    ///
    /// # Errors
    /// [`BreakerOpen`] with the time for which the breaker stays open.
    fn admit(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen>;

    /// Returns how long the breaker stays open; zero if it would admit an attempt now. Changes nothing.
    fn retry_in(&self, now: &dyn Now) -> Duration;

    /// Returns whether an attempt that starts `after` from now would be rejected. Changes nothing.
    fn would_reject(&self, after: Duration, now: &dyn Now) -> bool;

    /// Records the outcome of the attempt that `permit` was granted for.
    fn record(&self, permit: BreakerPermit, outcome: &Outcome, now: &dyn Now);

    /// Sets whether the breaker's rejections are enforced from now on: an operator control for incidents. The default
    /// implementation ignores it, for breakers without such a control.
    fn set_enforcement(&self, enforcement: Enforcement) {
        let _ = enforcement;
    }

    /// Returns whether the breaker has nothing to remember: a new one with the same settings would admit no attempt
    /// that this one would reject, now or after the same further failures. A collection of breakers by key can then
    /// replace it. Default: false.
    fn is_at_rest(&self, now: &dyn Now) -> bool {
        let _ = now;
        false
    }

    /// Returns a new breaker with the same settings and seed, for clients that have one breaker per target; `None` (the
    /// default) if the targets are to share this one.
    fn fresh(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

words! {
    /// Whether the rejections of a breaker are enforced.
    #[derive(Default)]
    pub enum Enforcement {
        /// Rejections are enforced. The default.
        #[default]
        Enforced = "enforced",
        /// No call is rejected; the calls that would have been are counted.
        Observed = "observed",
        /// No call is rejected, and none is counted.
        Off = "off",
    }
    /// All values.
    pub const ALL;
    /// Returns the value as one lower-case word, for metrics and logs.
    pub const fn name;
}

/// The error of a call that an open circuit breaker rejected.
///
/// Complete: implementations of [`Breaker`] create it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerOpen {
    /// How long the breaker stays open. A retry around this call treats it as a hint.
    pub retry_in: Duration,
}

impl fmt::Display for BreakerOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this client's own circuit breaker is open for another {:.1}", crate::text::Compact(self.retry_in))
    }
}

impl core::error::Error for BreakerOpen {}

/// The permit of a budget for one attempt: a number whose meaning is known to the budget only.
///
/// Neither `Copy` nor `Clone`, so that it is settled once.
#[derive(Debug, PartialEq, Eq)]
pub struct BudgetPermit(pub u64);

impl BudgetPermit {
    /// No permit: there is nothing to release, and only [`record`](Budget::record) receives it.
    pub const NONE: Self = Self(0);
}

/// The permit of a breaker for one attempt: a number whose meaning is known to the breaker only.
///
/// Neither `Copy` nor `Clone`, so that it is recorded once.
#[derive(Debug, PartialEq, Eq)]
pub struct BreakerPermit(pub u64);

impl BreakerPermit {
    /// No permit.
    pub const NONE: Self = Self(0);
}

/// The permits of all guards for one attempt.
///
/// The driver holds them between [`begin`](crate::machine::RetryMachine::begin) and
/// [`decide`](crate::machine::RetryMachine::decide), between `decide` and the next `begin`, and while it waits for its
/// [`turn`](crate::machine::RetryMachine::turn). A driver that drops a call settles them with [`Guards::release`] after
/// `decide`, with [`Guards::abandon`] during the attempt, and with [`Guards::release_begun`] between `begin` and an
/// attempt that is not made.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a permit that is not handed on is never settled"]
pub struct Permits {
    pub(crate) budget: BudgetPermit,
    pub(crate) breaker: BreakerPermit,
    pub(crate) quiet: LimiterPermit,
    pub(crate) pacer: LimiterPermit,
}

impl Permits {
    /// No permits: what the first `begin` of a call receives.
    pub const NONE: Self = Self::from_waiting(BudgetPermit::NONE, LimiterPermit::NONE);

    /// Returns the permits of an attempt that waits, to store them elsewhere. It has none of the breaker, which is
    /// asked when the attempt begins, and none of the pacer if it has [left](Guards::leave_pacer) it.
    #[must_use = "a permit that is not handed on is never settled"]
    pub const fn into_waiting(self) -> (BudgetPermit, LimiterPermit) {
        let Self { budget, breaker: _, quiet, pacer: _ } = self;
        (budget, quiet)
    }

    /// Creates the permits of an attempt that waits, from [`into_waiting`](Self::into_waiting).
    pub const fn from_waiting(budget: BudgetPermit, quiet: LimiterPermit) -> Self {
        Self { budget, breaker: BreakerPermit::NONE, quiet, pacer: LimiterPermit::NONE }
    }

    /// Returns whether there is no permit of a limiter: the attempt has not asked for its turn, or needs none.
    #[inline]
    #[must_use]
    pub fn has_no_turn(&self) -> bool {
        self.quiet == LimiterPermit::NONE && self.pacer == LimiterPermit::NONE
    }

    /// Takes over the permits of limiters from `turn`, which [`Guards::admit_if_open`] returned.
    #[inline]
    pub fn add_turn(&mut self, turn: Self) {
        (self.quiet, self.pacer) = (turn.quiet, turn.pacer);
    }

    /// Takes the permits out of `slot`, leaving [`NONE`](Self::NONE).
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

/// The guards of a call: what a decision consults besides the policy. All of them are optional.
///
/// The fields are public so that a driver can set a guard that it may or may not have.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Guards<'a> {
    /// The retry budget, if there is one.
    pub budget: Option<&'a dyn Budget>,
    /// The circuit breaker, if there is one.
    pub breaker: Option<&'a dyn Breaker>,
    /// The quiet period, if there is one. [`RetryMachine::turn`](crate::machine::RetryMachine::turn) asks it.
    pub quiet: Option<&'a dyn Limiter>,
    /// The pacer, if there is one. [`RetryMachine::turn`](crate::machine::RetryMachine::turn) asks it before the quiet
    /// period.
    pub pacer: Option<&'a dyn Limiter>,
    /// Whether the call retries although an outer layer is already retrying.
    pub nested: NestedRetries,
}

impl Default for Guards<'_> {
    fn default() -> Self {
        Self::none()
    }
}

impl<'a> Guards<'a> {
    /// Creates guards without a budget, a breaker, a quiet period and a pacer.
    #[inline]
    #[must_use]
    pub const fn none() -> Self {
        Self { budget: None, breaker: None, quiet: None, pacer: None, nested: NestedRetries::Allow }
    }

    /// Sets the budget.
    #[inline]
    #[must_use]
    pub const fn budget(mut self, budget: &'a dyn Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets the breaker.
    #[inline]
    #[must_use]
    pub const fn breaker(mut self, breaker: &'a dyn Breaker) -> Self {
        self.breaker = Some(breaker);
        self
    }

    /// Sets the quiet period.
    #[inline]
    #[must_use]
    pub const fn quiet(mut self, quiet: &'a dyn Limiter) -> Self {
        self.quiet = Some(quiet);
        self
    }

    /// Sets the pacer.
    #[inline]
    #[must_use]
    pub const fn pacer(mut self, pacer: &'a dyn Limiter) -> Self {
        self.pacer = Some(pacer);
        self
    }

    /// Sets whether the call retries although an outer layer is already retrying. Default: [`NestedRetries::Allow`].
    #[inline]
    #[must_use]
    pub const fn nested(mut self, nested: NestedRetries) -> Self {
        self.nested = nested;
        self
    }

    /// Returns whether there is neither a budget nor a breaker nor a quiet period nor a pacer. An outer layer may still
    /// be retrying.
    #[inline]
    #[must_use]
    pub const fn is_unguarded(&self) -> bool {
        self.budget.is_none() && self.breaker.is_none() && !self.has_limiter()
    }

    /// Returns whether there is a quiet period or a pacer, so that an attempt may have to wait for its turn.
    #[inline]
    #[must_use]
    pub const fn has_limiter(&self) -> bool {
        self.quiet.is_some() || self.pacer.is_some()
    }

    /// Returns whether there is neither a budget nor a breaker, so that nothing but a limiter can hold or reject an
    /// attempt.
    #[inline]
    #[must_use]
    pub const fn has_only_limiters(&self) -> bool {
        self.budget.is_none() && self.breaker.is_none()
    }

    /// Admits an attempt if every limiter [lets all attempts start](Limiter::admit_if_open). `None` if
    /// [`RetryMachine::turn`](crate::machine::RetryMachine::turn) has to ask them.
    #[inline]
    #[must_use]
    pub fn admit_if_open(&self) -> Option<Permits> {
        let mut permits = Permits::NONE;
        if let Some(quiet) = self.quiet {
            permits.quiet = quiet.admit_if_open()?;
        }
        if let Some(pacer) = self.pacer {
            permits.pacer = pacer.admit_if_open()?;
        }
        Some(permits)
    }

    /// Returns whether the call leaves retries to an outer layer.
    #[inline]
    pub(crate) fn leaves_retries_to_outer_layer(&self) -> bool {
        match self.nested {
            NestedRetries::Allow => false,
            NestedRetries::Disable => true,
            NestedRetries::ShareBudget => self.budget.is_none_or(Budget::is_unlimited),
        }
    }

    /// Reports the first attempt of a call to the budget, unless the outer layer has done so.
    #[inline]
    pub(crate) fn on_first_attempt(&self, now: &dyn Now) -> BudgetPermit {
        match (self.budget, self.nested) {
            (None, _) | (_, NestedRetries::ShareBudget) => BudgetPermit::NONE,
            (Some(budget), _) => budget.on_first_attempt(now),
        }
    }

    /// Reports the first attempt of a call that makes several attempts at the same time, and returns its permits. The
    /// breaker is not asked.
    pub fn first_of_several(&self, now: impl FnOnce() -> Instant) -> Permits {
        Permits { budget: self.on_first_attempt(&Unread::new(now)), ..Permits::NONE }
    }

    /// Acquires the permits of another attempt at the same time, as for a retry; `None` if the budget or the breaker
    /// rejects it.
    pub fn another_of_several(&self, now: impl FnOnce() -> Instant) -> Option<Permits> {
        let now = Unread::new(now);
        let mut permits = Permits::NONE;
        if let Some(budget) = self.budget {
            permits.budget = budget.try_acquire(FailureKind::Transient, &now)?;
        }
        match self.breaker.map(|breaker| breaker.admit(&now)) {
            None => {}
            Some(Ok(admitted)) => permits.breaker = admitted,
            Some(Err(_)) => {
                self.release(permits);
                return None;
            }
        }
        Some(permits)
    }

    /// Settles the permits of an attempt with its outcome.
    pub fn settle(&self, permits: Permits, outcome: &Outcome, now: impl FnOnce() -> Instant) {
        self.record(permits, outcome, &Unread::new(now));
    }

    /// Settles like [`settle`](Self::settle), for a driver that has read its clock before, such as at the start of the
    /// call: guards that read it once in a while read it less often then.
    #[inline]
    pub fn settle_after(
        &self,
        permits: Permits,
        outcome: &Outcome,
        earlier: Option<Instant>,
        now: impl FnOnce() -> Instant,
    ) {
        self.record(permits, outcome, &Unread::after(earlier, now));
    }

    /// Releases the permits of an attempt that was never made because the call was cancelled during its sleep.
    #[inline]
    pub fn release(&self, permits: Permits) {
        if let (Some(budget), true) = (self.budget, permits.budget != BudgetPermit::NONE) {
            budget.release(permits.budget);
        }
        if let (Some(quiet), true) = (self.quiet, permits.quiet != LimiterPermit::NONE) {
            quiet.release(permits.quiet);
        }
        if let (Some(pacer), true) = (self.pacer, permits.pacer != LimiterPermit::NONE) {
            pacer.release(permits.pacer);
        }
    }

    /// Gives up the place of an attempt among those that wait for the pacer, before its permits are
    /// [stored](Permits::into_waiting) elsewhere.
    pub fn leave_pacer(&self, permits: &mut Permits) {
        let pacer = core::mem::replace(&mut permits.pacer, LimiterPermit::NONE);
        self.release(Permits { pacer, ..Permits::NONE });
    }

    /// Settles the permits of an attempt that was dropped before it completed.
    #[inline]
    pub fn abandon(&self, permits: Permits, now: impl FnOnce() -> Instant) {
        self.record(permits, &Outcome::Cancelled, &Unread::new(now));
    }

    /// Settles the permits of an attempt that the breaker admitted and that was not made.
    #[inline]
    pub fn release_begun(&self, permits: Permits, now: impl FnOnce() -> Instant) {
        let Permits { budget, breaker: probe, quiet, pacer } = permits;
        if let Some(breaker) = self.breaker {
            breaker.record(probe, &Outcome::Cancelled, &Unread::new(now));
        }
        self.release(Permits { budget, breaker: BreakerPermit::NONE, quiet, pacer });
    }

    /// Reports the outcome of an attempt to the guards (step 1 of the decision).
    #[inline]
    pub(crate) fn record(&self, permits: Permits, outcome: &Outcome, now: &dyn Now) {
        if let Some(breaker) = self.breaker {
            breaker.record(permits.breaker, outcome, now);
        }
        if let Some(quiet) = self.quiet {
            quiet.record(permits.quiet, outcome, now);
        }
        if let Some(pacer) = self.pacer {
            pacer.record(permits.pacer, outcome, now);
        }
        let is_outer = self.nested == NestedRetries::ShareBudget && permits.budget == BudgetPermit::NONE;
        if let (Some(budget), false) = (self.budget, is_outer) {
            budget.record(permits.budget, outcome, now);
        }
    }
}

/// A guard that says when an attempt may start: now, after a wait, or not at all.
///
/// A call [asks](Self::admit) when an attempt is about to start. If it is told to wait, it waits and asks again with
/// the permit that it received, which is its place among the waiting calls. Each permit is settled exactly once: by
/// [`record`](Self::record) with the outcome of the attempt, or by [`release`](Self::release) if the attempt was not
/// made. Calls that never ask can still record outcomes, with [`LimiterPermit::NONE`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not limit when attempts start",
    label = "expected a type that implements `Limiter`, such as `QuietPeriod` or `Pacer`"
)]
pub trait Limiter: fmt::Debug + Send + Sync {
    /// Asks to start an attempt now. `permit` is [`LimiterPermit::NONE`] at first, and then the permit of the last
    /// answer. An attempt that cannot start by `latest` is rejected at once.
    fn admit(&self, permit: LimiterPermit, latest: Option<Instant>, now: &dyn Now) -> Turn;

    /// Admits an attempt if the limiter lets every attempt start at present, which it can say without the time. The
    /// permit need not be settled. `None` if the limiter has to be [asked](Self::admit). Default: `None`.
    ///
    /// A call that has no other guards than limiters starts and succeeds on a shorter path if all of them return a
    /// permit.
    fn admit_if_open(&self) -> Option<LimiterPermit> {
        None
    }

    /// Returns whether an attempt that is due `after` from now and must start by `latest` would certainly be rejected.
    /// Changes nothing.
    fn would_reject(&self, after: Duration, latest: Option<Instant>, now: &dyn Now) -> bool;

    /// Records the outcome of the attempt that `permit` was granted for.
    fn record(&self, permit: LimiterPermit, outcome: &Outcome, now: &dyn Now);

    /// Releases the permit of a call that no longer waits, or of an attempt that was not made.
    fn release(&self, permit: LimiterPermit);

    /// Returns whether the attempt that `permit` was granted for may still begin, for callers that prepare it for a
    /// while. If not, [`release`](Self::release) the permit and ask again. Changes nothing. Default: true.
    fn is_current(&self, permit: &LimiterPermit) -> bool {
        let _ = permit;
        true
    }

    /// Returns how long a call that asked now would wait; zero if it could start. Changes nothing.
    fn retry_in(&self, now: &dyn Now) -> Duration;

    /// Returns whether the limiter has nothing to remember: a new one with the same settings would hold no call that
    /// this one would not, now or after the same further outcomes. A collection of limiters by key can then replace it.
    /// Default: false.
    fn is_at_rest(&self, now: &dyn Now) -> bool {
        let _ = now;
        false
    }

    /// Returns a new limiter with the same settings, for clients that have one per target; `None` (the default) if the
    /// targets are to share this one.
    fn fresh(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// The answer of a [`Limiter`](crate::guard::Limiter) to a call that wants to start an attempt.
///
/// Complete: a call starts, waits or ends.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a permit that is not handed on is never settled"]
pub enum Turn {
    /// The attempt starts now, with this permit.
    Now(LimiterPermit),
    /// The call waits, and then asks again with this permit, which is its place.
    Wait {
        /// How long to wait before asking again.
        after: Duration,
        /// The place of the call.
        permit: LimiterPermit,
    },
    /// The attempt is not made. The permit that the call had is released.
    Rejected {
        /// In how long the attempt could start, as far as is known. A retry around this call treats it as a hint.
        retry_in: Duration,
    },
}

/// The permit of a limiter for one attempt, or the place of a call that waits for it: a number whose meaning is known
/// to the limiter only.
///
/// Neither `Copy` nor `Clone`, so that it is settled once.
#[derive(Debug, PartialEq, Eq)]
pub struct LimiterPermit(pub u64);

impl LimiterPermit {
    /// No permit.
    pub const NONE: Self = Self(0);
}
