//! The control of an operator: the setting, the budget that obeys it, and a budget without a bound to put behind it.

use core::borrow::Borrow;
use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use crate::guards::guard::{Answer, Ask, End, Guard, Permit};
use crate::guards::now::Now;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::instant::Instant;
use crate::numbers::ratio::Ratio;
use crate::outcome::FailureKind;

/// The operator control of a target, with its counters. It limits and stops retries itself, as a [guard](Guard), and
/// says what is done with the refusals of the guards that are [under it](Controlled), which are set together.
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

/// What a control does with the decisions of the guards under it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ControlMode {
    /// What a guard refuses is refused. The default.
    #[default]
    Enforced,
    /// The guards are asked, and what they would refuse is counted; everything is granted.
    Observed,
    /// No retry is reserved, and everything is granted.
    Off,
    /// Every retry is rejected. First attempts are as enforced.
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
    /// Attempts and retries that guards rejected while they were enforced.
    pub rejected: u64,
    /// Attempts and retries that guards would have rejected, or let wait, while they were only observed.
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
        match self {
            Self::Enforced => "enforced",
            Self::Observed => "observed",
            Self::Off => "off",
            Self::NoRetries => "no-retries",
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

/// Limits and stops the retries of a target. Put it last among the guards, so that its share is one of what the others
/// grant.
impl Guard for RetryControl {
    fn name(&self) -> &'static str {
        "control"
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        let setting = self.setting();
        if setting.mode() == ControlMode::NoRetries {
            self.stopped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        if self.is_within(setting.share()) { Some(Permit::NONE) } else { None }
    }

    #[inline]
    fn settle(&self, _: Permit, _: End<'_>, _: &dyn Now) {}

    /// Returns zero while no retry is granted; otherwise `None`.
    fn available(&self) -> Option<u64> {
        let setting = self.setting();
        if setting.mode() == ControlMode::NoRetries || setting.share() == Ratio::ZERO { Some(0) } else { None }
    }
}

/// A guard under an operator control: while the program runs, what it refuses is refused, only counted, or not asked
/// for. Which retries the control itself limits, [`RetryControl`] says, which is a guard, too.
///
/// The guard behind the control is told of every attempt in every [`ControlMode`], so that its state is current when it
/// is enforced again. Permits that it granted are settled with it, even if the mode has changed.
///
/// | mode | retries are reserved | what it refuses, and whom it lets wait |
/// |---|---|---|
/// | [`ControlMode::Enforced`], [`ControlMode::NoRetries`] | yes | is refused, and waits |
/// | [`ControlMode::Observed`] | yes | starts at once, and is [counted](ControlSnapshot::would_have_rejected) |
/// | [`ControlMode::Off`] | no | starts at once |
///
/// Use [`ControlMode::Observed`] to introduce a guard into a running program before you rely on it.
///
/// # Cost
///
/// Lock-free, shared by reference. It adds one load to the start of an attempt and to a requested retry.
///
/// ```
/// use stagger_core::budget::{ControlMode, Controlled, RetryControl, Tokens};
/// use stagger_core::guard::Guard;
/// use stagger_core::{FailureKind, Instant};
///
/// static CONTROL: RetryControl = RetryControl::new();
/// let empty = Tokens::builder().initial(0).build()?;
/// let budget = Controlled::new(&empty, &CONTROL);
/// let is_granted = || budget.reserve(FailureKind::Transient, &Instant::ZERO).is_some();
///
/// assert!(!is_granted());
/// CONTROL.set(ControlMode::Observed);
/// assert!(is_granted());
/// assert_eq!(CONTROL.snapshot().would_have_rejected, 1);
/// # Ok::<(), stagger_core::budget::BudgetError>(())
/// ```
#[derive(Debug)]
pub struct Controlled<G, S> {
    guard: G,
    control: S,
}

/// Granted without the guard.
const FREE: Permit = Permit::UNGUARDED;

impl<G, S: Borrow<RetryControl>> Controlled<G, S> {
    /// Puts a guard under a control, such as a reference to one or an `Arc` of one.
    pub const fn new(guard: G, control: S) -> Self {
        Self { guard, control }
    }

    /// Returns the guard behind the control.
    pub const fn guard(&self) -> &G {
        &self.guard
    }

    fn mode(&self) -> ControlMode {
        self.control.borrow().setting().mode()
    }

    /// Lets an attempt start that the guard refused or would let wait.
    fn let_through(&self, mode: ControlMode) -> Answer {
        if mode == ControlMode::Observed {
            self.count(true);
        }
        Answer::Go(FREE)
    }

    fn count(&self, is_observed: bool) {
        let RetryControl { would_have_rejected, rejected, .. } = self.control.borrow();
        let counter = if is_observed { would_have_rejected } else { rejected };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl<G, S> Guard for Controlled<G, S>
where
    G: fmt::Debug + Send + Sync + Deref<Target: Guard>,
    S: fmt::Debug + Send + Sync + Borrow<RetryControl>,
{
    fn name(&self) -> &'static str {
        self.guard.name()
    }

    fn ask(&self, ask: Ask, held: Permit, now: &dyn Now) -> Answer {
        let mode = self.mode();
        let was_free = held == FREE;
        let answer = self.guard.ask(ask, if was_free { Permit::NONE } else { held }, now);
        let is_enforced = matches!(mode, ControlMode::Enforced | ControlMode::NoRetries);
        match answer {
            Answer::Go(Permit::NONE) if was_free => Answer::Go(FREE),
            Answer::Go(_) => answer,
            Answer::Wait { .. } if is_enforced => answer,
            Answer::No { .. } if is_enforced => {
                self.count(false);
                answer
            }
            Answer::Wait { permit, .. } => {
                self.guard.settle(permit, End::NeverMade, now);
                self.let_through(mode)
            }
            Answer::No { .. } => self.let_through(mode),
        }
    }

    fn reserve(&self, kind: FailureKind, now: &dyn Now) -> Option<Permit> {
        let mode = self.mode();
        if mode == ControlMode::Off {
            return Some(FREE);
        }
        let reserved = self.guard.reserve(kind, now);
        if reserved.is_none() {
            self.count(mode == ControlMode::Observed);
            return if mode == ControlMode::Observed { Some(FREE) } else { None };
        }
        reserved
    }

    fn would_refuse(&self, after: Duration, latest: Option<Instant>, now: &dyn Now) -> bool {
        match self.mode() {
            ControlMode::Enforced | ControlMode::NoRetries => self.guard.would_refuse(after, latest, now),
            ControlMode::Observed | ControlMode::Off => false,
        }
    }

    #[inline]
    fn settle(&self, permit: Permit, end: End<'_>, now: &dyn Now) {
        match (permit, end) {
            (FREE, End::NeverMade) => {}
            (FREE, End::Made(_)) => self.guard.settle(Permit::NONE, end, now),
            (permit, _) => self.guard.settle(permit, end, now),
        }
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        match self.mode() {
            ControlMode::Enforced | ControlMode::NoRetries => self.guard.retry_in(now),
            ControlMode::Observed | ControlMode::Off => Duration::ZERO,
        }
    }

    fn available(&self) -> Option<u64> {
        match self.mode() {
            ControlMode::Enforced | ControlMode::NoRetries => self.guard.available(),
            ControlMode::Observed | ControlMode::Off => None,
        }
    }

    fn bounds_retries(&self) -> bool {
        self.guard.bounds_retries()
    }

    fn is_at_rest(&self, now: &dyn Now) -> bool {
        self.guard.is_at_rest(now)
    }

    fn needs_every_call(&self) -> bool {
        self.guard.needs_every_call()
    }
}
