//! The control of an operator: the setting, the budget that obeys it, and a budget without a bound to put behind it.

use core::borrow::Borrow;
use core::fmt;

use crate::guards::guard::{Budget, BudgetPermit, Enforcement};
use crate::guards::now::Now;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::ratio::Ratio;
use crate::outcome::{FailureKind, Outcome};

/// The operator control of a target, with its counters. It belongs to one
/// [`ControlledBudget`](super::ControlledBudget), or is shared by several, which are then set together and apply the
/// share together.
///
/// Lock-free, shared by reference.
#[derive(Debug)]
pub struct RetryControl {
    /// The mode in the upper bits, the millionths of the share in the lower, so that both are read together.
    setting: AtomicU64,
    /// How many retries have been requested under the share.
    asked: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) would_have_rejected: AtomicU64,
    limited: AtomicU64,
    pub(super) stopped: AtomicU64,
}

/// The setting of an operator control: a [`ControlMode`], and the share of the retries that it grants.
///
/// The default is [`ControlMode::Enforced`] and all retries. As text: `enforced`, `observed 25%`, `no-retries`.
///
/// ```
/// use stagger_core::Ratio;
/// use stagger_core::budget::{ControlMode, ControlSetting};
///
/// assert_eq!(ControlSetting::default(), ControlSetting::new(ControlMode::Enforced, Ratio::ONE));
/// assert_eq!(ControlSetting::from(Ratio::percent(25)).to_string(), "enforced 25%");
/// assert_eq!(ControlSetting::from(ControlMode::NoRetries).to_string(), "no-retries");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ControlSetting {
    mode: ControlMode,
    share: Ratio,
}

/// What a control does with the decisions of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ControlMode {
    /// A retry that the budget rejects is rejected. The default.
    #[default]
    Enforced,
    /// The budget is asked, and its rejections are counted; every retry is granted.
    Observed,
    /// The budget is not asked; every retry is granted.
    Off,
    /// Every retry is rejected.
    NoRetries,
}

/// A snapshot of an operator control, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControlSnapshot {
    /// The mode.
    pub mode: ControlMode,
    /// The share of the retries that it grants.
    pub share: Ratio,
    /// Retries that the budget rejected while it was enforced.
    pub rejected: u64,
    /// Retries that the budget would have rejected while it was only observed.
    pub would_have_rejected: u64,
    /// Retries that were rejected because they were above the share.
    pub limited: u64,
    /// Retries that were rejected by [`ControlMode::NoRetries`].
    pub stopped: u64,
}

impl ControlMode {
    /// All values.
    pub const ALL: &'static [Self] = &[Self::Enforced, Self::Observed, Self::Off, Self::NoRetries];

    /// Returns the mode as one lower-case word, for metrics, logs and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.enforcement() {
            Some(enforcement) => enforcement.name(),
            None => "no-retries",
        }
    }

    /// Returns what the mode means for a breaker; `None` for [`NoRetries`](Self::NoRetries), which does not affect
    /// first attempts.
    #[must_use]
    pub const fn enforcement(self) -> Option<Enforcement> {
        match self {
            Self::Enforced => Some(Enforcement::Enforced),
            Self::Observed => Some(Enforcement::Observed),
            Self::Off => Some(Enforcement::Off),
            Self::NoRetries => None,
        }
    }

    /// Returns the mode with this [name](Self::name), for a control that an environment variable or a file sets.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.name() == name)
    }
}

impl ControlSetting {
    /// Creates a setting with this mode and this share of the retries. Range of the share: `0..=1`; more counts as 1.
    #[must_use]
    pub const fn new(mode: ControlMode, share: Ratio) -> Self {
        Self { mode, share: if share.is_above_one() { Ratio::ONE } else { share } }
    }

    /// Returns the mode.
    #[must_use]
    pub const fn mode(self) -> ControlMode {
        self.mode
    }

    /// Returns the share of the retries that is granted.
    #[must_use]
    pub const fn share(self) -> Ratio {
        self.share
    }

    const fn to_word(self) -> u64 {
        (self.mode as u64) << 32 | self.share.as_millionths() as u64
    }

    fn of_word(word: u64) -> Self {
        let mode = ControlMode::ALL.iter().copied().find(|&mode| mode as u64 == word >> 32).unwrap_or_default();
        Self { mode, share: Ratio::millionths(word as u32) }
    }
}

impl Default for ControlSetting {
    fn default() -> Self {
        Self::new(ControlMode::Enforced, Ratio::ONE)
    }
}

/// Creates a setting with this mode and all retries.
impl From<ControlMode> for ControlSetting {
    fn from(mode: ControlMode) -> Self {
        Self::new(mode, Ratio::ONE)
    }
}

/// Creates an enforced setting with this share of the retries.
impl From<Ratio> for ControlSetting {
    fn from(share: Ratio) -> Self {
        Self::new(ControlMode::Enforced, share)
    }
}

impl fmt::Display for ControlSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mode.name())?;
        if self.share == Ratio::ONE { Ok(()) } else { write!(f, " {}", self.share) }
    }
}

impl RetryControl {
    const_unless_loom! {
        /// Creates a control that enforces the budget and grants all retries, with all counters at zero.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                setting: AtomicU64::new(ControlSetting::new(ControlMode::Enforced, Ratio::ONE).to_word()),
                asked: AtomicU64::new(0),
                rejected: AtomicU64::new(0),
                would_have_rejected: AtomicU64::new(0),
                limited: AtomicU64::new(0),
                stopped: AtomicU64::new(0),
            }
        }
    }

    /// Sets a [`ControlMode`], a share of the retries ([`Ratio`]), or both ([`ControlSetting`]). It applies to every
    /// retry requested from now on; permits that were already granted stay valid.
    pub fn set(&self, to: impl Into<ControlSetting>) {
        self.setting.store(to.into().to_word(), Ordering::Relaxed);
    }

    /// Returns the setting.
    #[must_use]
    pub fn setting(&self) -> ControlSetting {
        ControlSetting::of_word(self.setting.load(Ordering::Relaxed))
    }

    /// Returns the setting and the counters.
    #[must_use]
    pub fn snapshot(&self) -> ControlSnapshot {
        let setting = self.setting();
        ControlSnapshot {
            mode: setting.mode,
            share: setting.share,
            rejected: self.rejected.load(Ordering::Relaxed),
            would_have_rejected: self.would_have_rejected.load(Ordering::Relaxed),
            limited: self.limited.load(Ordering::Relaxed),
            stopped: self.stopped.load(Ordering::Relaxed),
        }
    }

    /// Returns whether the share grants this retry. Of the first `n` requests it grants `share · n`, rounded down, and
    /// so, plus or minus one, of any `n` in a row.
    pub(super) fn is_within(&self, share: Ratio) -> bool {
        if share == Ratio::ONE {
            return true;
        }
        let before = self.asked.fetch_add(1, Ordering::Relaxed);
        let is_within = share.of(before.wrapping_add(1)) > share.of(before);
        if !is_within {
            self.limited.fetch_add(1, Ordering::Relaxed);
        }
        is_within
    }
}

impl Default for RetryControl {
    fn default() -> Self {
        Self::new()
    }
}

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
/// let is_granted = || BUDGET.try_acquire(FailureKind::Transient, &Instant::ZERO).is_some();
///
/// BUDGET.set(ControlMode::NoRetries);
/// assert!(!is_granted());
/// BUDGET.set(Ratio::percent(25));
/// let granted: u32 = (0..100).map(|_| u32::from(is_granted())).sum();
/// assert_eq!(granted, 25);
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

/// A budget without a bound: it grants every retry.
///
/// Use it behind a [`ControlledBudget`](super::ControlledBudget) if only the operator control should bound retries and
/// hedges. It costs nothing.
///
/// ```
/// use stagger_core::budget::{ControlledBudget, ControlMode, Unlimited};
/// use stagger_core::{Budget, Instant, FailureKind};
///
/// static RETRIES: ControlledBudget<Unlimited> = ControlledBudget::new(Unlimited);
///
/// assert!(RETRIES.try_acquire(FailureKind::Transient, &Instant::ZERO).is_some());
/// RETRIES.set(ControlMode::NoRetries);
/// assert!(RETRIES.try_acquire(FailureKind::Transient, &Instant::ZERO).is_none());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn try_acquire(&self, _: FailureKind, _: &dyn Now) -> Option<BudgetPermit> {
        Some(BudgetPermit::NONE)
    }

    #[inline]
    fn record(&self, _: BudgetPermit, _: &Outcome, _: &dyn Now) {}

    fn release(&self, _: BudgetPermit) {}

    fn is_unlimited(&self) -> bool {
        true
    }

    fn is_at_rest(&self, _: &dyn Now) -> bool {
        true
    }

    fn needs_every_call(&self) -> bool {
        false
    }

    fn fresh(&self) -> Option<Self> {
        Some(Self)
    }
}
