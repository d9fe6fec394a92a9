use core::fmt;

use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Enforcement, Ratio};

/// Where the lever of a target is, and what it has counted. It belongs to one [`Lever`](super::Lever), or several share
/// it: then they are moved together, and together they let the share pass.
///
/// Lock-free, shared by reference.
#[derive(Debug)]
pub struct Switch {
    /// The mode above, the millionths of the share below, so that both are seen together.
    setting: AtomicU64,
    /// How many retries the share was asked for.
    asked: AtomicU64,
    refused: AtomicU64,
    would_have_refused: AtomicU64,
    limited: AtomicU64,
    stopped: AtomicU64,
}

/// Where a lever is put: in a [`Mode`], and which share of the retries passes beside it.
///
/// The default is [`Mode::Enforced`] and all of them. As text: `enforced`, `observed 25%`, `no-retries`.
///
/// ```
/// use stagger_core::Ratio;
/// use stagger_core::budget::{Mode, Setting};
///
/// assert_eq!(Setting::default(), Setting::new(Mode::Enforced, Ratio::ONE));
/// assert_eq!(Setting::from(Ratio::percent(25)).to_string(), "enforced 25%");
/// assert_eq!(Setting::from(Mode::NoRetries).to_string(), "no-retries");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    mode: Mode,
    share: Ratio,
}

/// What is done with what a budget says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
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

/// What a lever has counted, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeverSnapshot {
    /// Its mode.
    pub mode: Mode,
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

impl Mode {
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

    /// The mode of this [name](Self::name), for a lever that is moved by an environment variable or a file.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.name() == name)
    }
}

impl Setting {
    /// This mode, and this share of the retries beside it. Range of the share: `0..=1`; what is above is 1.
    #[must_use]
    pub const fn new(mode: Mode, share: Ratio) -> Self {
        Self { mode, share: if share.is_above_one() { Ratio::ONE } else { share } }
    }

    /// The mode.
    #[must_use]
    pub const fn mode(self) -> Mode {
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
        let mode = Mode::ALL.iter().copied().find(|&mode| mode as u64 == word >> 32).unwrap_or_default();
        Self { mode, share: Ratio::millionths(word as u32) }
    }
}

impl Default for Setting {
    fn default() -> Self {
        Self::new(Mode::Enforced, Ratio::ONE)
    }
}

/// This mode, and all retries.
impl From<Mode> for Setting {
    fn from(mode: Mode) -> Self {
        Self::new(mode, Ratio::ONE)
    }
}

/// Enforced, and this share of the retries.
impl From<Ratio> for Setting {
    fn from(share: Ratio) -> Self {
        Self::new(Mode::Enforced, share)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mode.name())?;
        if self.share == Ratio::ONE { Ok(()) } else { write!(f, " {}", self.share) }
    }
}

impl Switch {
    const_unless_loom! {
        /// Enforced, and all retries; nothing counted.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                setting: AtomicU64::new(Setting::new(Mode::Enforced, Ratio::ONE).to_word()),
                asked: AtomicU64::new(0),
                refused: AtomicU64::new(0),
                would_have_refused: AtomicU64::new(0),
                limited: AtomicU64::new(0),
                stopped: AtomicU64::new(0),
            }
        }
    }

    /// Moves it: to a [`Mode`], to a share of the retries ([`Ratio`]), or to both ([`Setting`]). It holds for every
    /// retry that is asked for from now on; those that were lent stay lent.
    pub fn set(&self, to: impl Into<Setting>) {
        self.setting.store(to.into().to_word(), Ordering::Relaxed);
    }

    /// Where it is.
    #[must_use]
    pub fn setting(&self) -> Setting {
        Setting::of_word(self.setting.load(Ordering::Relaxed))
    }

    /// Where it is, and what it has counted so far.
    #[must_use]
    pub fn snapshot(&self) -> LeverSnapshot {
        let setting = self.setting();
        LeverSnapshot {
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

impl Default for Switch {
    fn default() -> Self {
        Self::new()
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
