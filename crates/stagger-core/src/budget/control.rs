use core::fmt;

use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Ratio, guard::Enforcement};

/// Where the operator control of a target is, and what it has counted. It belongs to one [`ControlledBudget`](super::ControlledBudget), or several share
/// it: then they are moved together, and together they let the share pass.
///
/// Lock-free, shared by reference.
#[derive(Debug)]
pub struct RetryControl {
    /// The mode above, the millionths of the share below, so that both are seen together.
    setting: AtomicU64,
    /// How many retries the share was asked for.
    asked: AtomicU64,
    refused: AtomicU64,
    would_have_refused: AtomicU64,
    limited: AtomicU64,
    stopped: AtomicU64,
}

/// Where an operator control is put: in a [`ControlMode`], and which share of the retries passes beside it.
///
/// The default is [`ControlMode::Enforced`] and all of them. As text: `enforced`, `observed 25%`, `no-retries`.
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

/// What is done with what a budget says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ControlMode {
    /// What the budget refuses is refused. The default.
    #[default]
    Enforced,
    /// The budget is asked, and what it refuses is counted; every retry passes.
    Observed,
    /// The budget is not asked; every retry passes.
    Off,
    /// No retry passes.
    NoRetries,
}

/// What an operator control has counted, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControlSnapshot {
    /// Its mode.
    pub mode: ControlMode,
    /// The share of the retries that it lets pass.
    pub share: Ratio,
    /// Retries that the budget refused while it was enforced.
    pub refused: u64,
    /// Retries that the budget would have refused while it was only observed.
    pub would_have_refused: u64,
    /// Retries that were refused because they were above the share.
    pub limited: u64,
    /// Retries that were refused because there shall be none.
    pub stopped: u64,
}

impl ControlMode {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Enforced, Self::Observed, Self::Off, Self::NoRetries];

    /// It as one lower-case word, for metrics, logs and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.enforcement() {
            Some(enforcement) => enforcement.name(),
            None => "no-retries",
        }
    }

    /// What it means for a breaker; `None` for [`NoRetries`](Self::NoRetries), with which first attempts go on as before.
    #[must_use]
    pub const fn enforcement(self) -> Option<Enforcement> {
        match self {
            Self::Enforced => Some(Enforcement::Enforced),
            Self::Observed => Some(Enforcement::Observed),
            Self::Off => Some(Enforcement::Off),
            Self::NoRetries => None,
        }
    }

    /// The mode of this [name](Self::name), for an operator control that is moved by an environment variable or a file.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.name() == name)
    }
}

impl ControlSetting {
    /// This mode, and this share of the retries beside it. Range of the share: `0..=1`; what is above is 1.
    #[must_use]
    pub const fn new(mode: ControlMode, share: Ratio) -> Self {
        Self { mode, share: if share.is_above_one() { Ratio::ONE } else { share } }
    }

    /// The mode.
    #[must_use]
    pub const fn mode(self) -> ControlMode {
        self.mode
    }

    /// The share of the retries that passes.
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

/// This mode, and all retries.
impl From<ControlMode> for ControlSetting {
    fn from(mode: ControlMode) -> Self {
        Self::new(mode, Ratio::ONE)
    }
}

/// Enforced, and this share of the retries.
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
        /// Enforced, and all retries; nothing counted.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                setting: AtomicU64::new(ControlSetting::new(ControlMode::Enforced, Ratio::ONE).to_word()),
                asked: AtomicU64::new(0),
                refused: AtomicU64::new(0),
                would_have_refused: AtomicU64::new(0),
                limited: AtomicU64::new(0),
                stopped: AtomicU64::new(0),
            }
        }
    }

    /// Moves it: to a [`ControlMode`], to a share of the retries ([`Ratio`]), or to both ([`ControlSetting`]). It holds for every
    /// retry that is asked for from now on; those that were lent stay lent.
    pub fn set(&self, to: impl Into<ControlSetting>) {
        self.setting.store(to.into().to_word(), Ordering::Relaxed);
    }

    /// Where it is.
    #[must_use]
    pub fn setting(&self) -> ControlSetting {
        ControlSetting::of_word(self.setting.load(Ordering::Relaxed))
    }

    /// Where it is, and what it has counted so far.
    #[must_use]
    pub fn snapshot(&self) -> ControlSnapshot {
        let setting = self.setting();
        ControlSnapshot {
            mode: setting.mode,
            share: setting.share,
            refused: self.refused.load(Ordering::Relaxed),
            would_have_refused: self.would_have_refused.load(Ordering::Relaxed),
            limited: self.limited.load(Ordering::Relaxed),
            stopped: self.stopped.load(Ordering::Relaxed),
        }
    }

    /// Whether the share lets this one pass: of the first `n` that are asked for, `share · n` do, rounded down, and so,
    /// give or take one, of any that follow one another.
    pub(super) fn is_within(&self, share: Ratio) -> bool {
        if share == Ratio::ONE {
            return true;
        }
        let before = self.asked.fetch_add(1, Ordering::Relaxed);
        let is_within = share.of(before.wrapping_add(1)) > share.of(before);
        if !is_within {
            count(&self.limited);
        }
        is_within
    }

    pub(super) fn count_refused(&self) {
        count(&self.refused);
    }

    pub(super) fn count_would_have_refused(&self) {
        count(&self.would_have_refused);
    }

    pub(super) fn count_stopped(&self) {
        count(&self.stopped);
    }
}

impl Default for RetryControl {
    fn default() -> Self {
        Self::new()
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
