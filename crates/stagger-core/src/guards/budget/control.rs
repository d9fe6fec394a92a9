use core::fmt;

use crate::guards::guard::Enforcement;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::ratio::Ratio;

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
