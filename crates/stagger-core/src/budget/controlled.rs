use core::borrow::Borrow;
use core::fmt;

use super::{ControlMode, ControlSetting, ControlSnapshot, RetryControl};
use crate::guard::Now;
use crate::sync::const_unless_loom;
use crate::{Budget, FailureKind, Outcome, Ratio, guard::BudgetPermit};

/// A budget with an operator control for incidents: it can be enforced, only observed, or put aside, and retries can be turned down
/// to a share or stopped altogether, while the program runs.
///
/// The budget behind it hears of every attempt in every [`ControlMode`], so that it knows the present when it is enforced
/// again, and what it lent comes back to it, whatever the mode has become meanwhile.
///
/// | mode | a retry passes | what the budget refuses |
/// |---|---|---|
/// | [`ControlMode::Enforced`] | if the budget pays | is refused |
/// | [`ControlMode::Observed`] | always | passes, and is [counted](ControlSnapshot::would_have_refused) |
/// | [`ControlMode::Off`] | always | is not asked |
/// | [`ControlMode::NoRetries`] | never | is not asked |
///
/// # What it bounds
///
/// What passes while it is [enforced](ControlMode::Enforced): as much as the budget behind it says, whatever it was moved to
/// before. With [`ControlMode::NoRetries`] there is no retry at all. [`ControlMode::Observed`] and [`ControlMode::Off`] bound nothing.
///
/// Use [`ControlMode::Observed`] to bring a budget into a program that runs, before it is trusted.
///
/// # Cost
///
///
/// Beside each mode stands a share, [`ControlSetting::share`]: at 25 %, every fourth of the retries that are asked for goes on
/// to the budget, and the others are refused. It is exact: of any `n` that follow one another `share · n` pass, give or
/// take one, whatever the number of threads.
///
/// Hedges are lent by the same budget, so they are turned down and stopped with the retries. Where nothing but the operator control
/// shall bound them, the budget is [`Unlimited`](super::Unlimited).
///
/// Lock-free, shared by reference; it costs one load when a retry is asked for, one addition more while there is a
/// share, and nothing for a success.
///
/// ```
/// use stagger_core::budget::{ControlledBudget, ControlMode, Tokens};
/// use stagger_core::{Budget, Instant, FailureKind, Ratio};
///
/// static BUDGET: ControlledBudget<Tokens> = ControlledBudget::new(Tokens::new());
/// let lent = |n| (0..n).filter(|_| BUDGET.try_acquire(FailureKind::Transient, &Instant::ZERO).is_some()).count();
///
/// BUDGET.set(ControlMode::NoRetries);
/// assert_eq!(lent(100), 0);
/// BUDGET.set(Ratio::percent(25));
/// assert_eq!(lent(100), 25);
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
        let switch = self.control();
        let setting = switch.setting();
        if setting.mode() == ControlMode::NoRetries {
            switch.count_stopped();
            return None;
        }
        if !switch.is_within(setting.share()) {
            return None;
        }
        if setting.mode() == ControlMode::Off {
            return Some(FREE);
        }
        let permit = self.budget.try_acquire(kind, now);
        if permit.is_some() {
            permit
        } else if setting.mode() == ControlMode::Observed {
            switch.count_would_have_refused();
            Some(FREE)
        } else {
            switch.count_refused();
            None
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
}

impl<B: fmt::Debug, S: Borrow<RetryControl>> fmt::Debug for ControlledBudget<B, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlledBudget").field("budget", &self.budget).field("switch", self.control()).finish()
    }
}
