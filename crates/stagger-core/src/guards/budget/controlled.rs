use core::borrow::Borrow;
use core::fmt;

use super::{ControlMode, ControlSetting, ControlSnapshot, RetryControl};
use crate::guards::guard::{Budget, BudgetPermit};
use crate::guards::now::Now;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::ratio::Ratio;
use crate::outcome::{FailureKind, Outcome};

/// A budget with an operator control for incidents: while the program runs, it can be enforced, only observed, or
/// switched off, and retries can be limited to a share or stopped altogether.
///
/// The budget behind the control records every attempt in every [`ControlMode`], so that its state is current when it
/// is enforced again. Permits that it granted are settled with it, even if the mode has changed.
///
/// | mode | a retry is granted | a rejection of the budget |
/// |---|---|---|
/// | [`ControlMode::Enforced`] | if the budget grants it | rejects the retry |
/// | [`ControlMode::Observed`] | always | is [counted](ControlSnapshot::would_have_rejected) only |
/// | [`ControlMode::Off`] | always | does not occur: the budget is not asked |
/// | [`ControlMode::NoRetries`] | never | does not occur: the budget is not asked |
///
/// In each mode, a share limits the retries further, [`ControlSetting::share`]: at 25 %, every fourth requested retry
/// is passed on to the budget, and the others are rejected. The share is exact: of any `n` requests in a row, `share ·
/// n` are passed on, plus or minus one, whatever the number of threads.
///
/// Hedges use the same budget, so they are limited and stopped together with the retries. If only the operator control
/// should bound them, use [`Unlimited`](super::Unlimited) as the budget.
///
/// # What it bounds
///
/// While it is [enforced](ControlMode::Enforced): whatever the budget bounds, regardless of earlier modes. With
/// [`ControlMode::NoRetries`] there are no retries at all. [`ControlMode::Observed`] and [`ControlMode::Off`] bound
/// nothing.
///
/// Use [`ControlMode::Observed`] to introduce a budget into a running program before you rely on it.
///
/// # Cost
///
/// Lock-free, shared by reference. It adds one load to a requested retry, one addition more while there is a share, and
/// nothing to a success.
///
/// ```
/// use stagger_core::budget::{ControlledBudget, ControlMode, Tokens};
/// use stagger_core::{Budget, Instant, FailureKind, Ratio};
///
/// static BUDGET: ControlledBudget<Tokens> = ControlledBudget::new(Tokens::new());
/// let granted = |n| (0..n).filter(|_| BUDGET.try_acquire(FailureKind::Transient, &Instant::ZERO).is_some()).count();
///
/// BUDGET.set(ControlMode::NoRetries);
/// assert_eq!(granted(100), 0);
/// BUDGET.set(Ratio::percent(25));
/// assert_eq!(granted(100), 25);
/// assert_eq!(BUDGET.budget().available(), Some(75));
/// ```
pub struct ControlledBudget<B, S = RetryControl> {
    budget: B,
    control: S,
}

/// Granted without the budget. No budget in this crate issues this permit: tokens, slots and counts are far smaller.
const FREE: BudgetPermit = BudgetPermit(u64::MAX);

impl<B> ControlledBudget<B> {
    const_unless_loom! {
        /// Creates a controlled budget with a control of its own, enforced.
        #[must_use]
        pub const fn new(budget: B) -> Self {
            Self { budget, control: RetryControl::new() }
        }
    }
}

impl<B, S: Borrow<RetryControl>> ControlledBudget<B, S> {
    /// Creates a controlled budget with a control that others may share, such as an `Arc` of one.
    #[must_use]
    pub const fn with_control(budget: B, control: S) -> Self {
        Self { budget, control }
    }

    /// Returns the budget behind the control.
    #[must_use]
    pub const fn budget(&self) -> &B {
        &self.budget
    }

    /// Returns the control, which other budgets may share.
    #[must_use]
    pub fn control(&self) -> &RetryControl {
        self.control.borrow()
    }

    /// Sets the control: see [`RetryControl::set`].
    pub fn set(&self, to: impl Into<ControlSetting>) {
        self.control().set(to);
    }

    /// Returns the mode.
    #[must_use]
    pub fn mode(&self) -> ControlMode {
        self.control().setting().mode()
    }

    /// Returns the setting and the counters.
    #[must_use]
    pub fn snapshot(&self) -> ControlSnapshot {
        self.control().snapshot()
    }
}

impl<B: Budget, S: Borrow<RetryControl> + Send + Sync> Budget for ControlledBudget<B, S> {
    #[inline]
    fn on_first_attempt(&self, now: &dyn Now) -> BudgetPermit {
        self.budget.on_first_attempt(now)
    }

    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        let control = self.control();
        let setting = control.setting();
        let reject = |counter: &AtomicU64| {
            counter.fetch_add(1, Ordering::Relaxed);
            None
        };
        match setting.mode() {
            ControlMode::NoRetries => reject(&control.stopped),
            _ if !control.is_within(setting.share()) => None,
            ControlMode::Off => Some(FREE),
            ControlMode::Enforced => self.budget.try_acquire(kind, now).or_else(|| reject(&control.rejected)),
            ControlMode::Observed => {
                let permit = self.budget.try_acquire(kind, now);
                permit.or_else(|| reject(&control.would_have_rejected).or(Some(FREE)))
            }
        }
    }

    #[inline]
    fn record(&self, permit: BudgetPermit, outcome: &Outcome, now: &dyn Now) {
        self.budget.record(if permit == FREE { BudgetPermit::NONE } else { permit }, outcome, now);
    }

    fn release(&self, permit: BudgetPermit) {
        if permit != FREE {
            self.budget.release(permit);
        }
    }

    /// Returns what is available in the budget while it is enforced; zero while no retry is granted; otherwise `None`.
    fn available(&self) -> Option<u64> {
        let setting = self.control().setting();
        match setting.mode() {
            ControlMode::NoRetries => Some(0),
            _ if setting.share() == Ratio::ZERO => Some(0),
            ControlMode::Enforced => self.budget.available(),
            ControlMode::Observed | ControlMode::Off => None,
        }
    }

    fn is_unlimited(&self) -> bool {
        self.budget.is_unlimited()
    }

    fn is_at_rest(&self, now: &dyn Now) -> bool {
        self.budget.is_at_rest(now)
    }
}

impl<B: fmt::Debug, S: Borrow<RetryControl>> fmt::Debug for ControlledBudget<B, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlledBudget").field("budget", &self.budget).field("control", self.control()).finish()
    }
}
