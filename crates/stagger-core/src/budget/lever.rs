use crate::guard::Now;
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Budget, Kind, Loan, Outcome};

/// A budget with a lever for incidents: it can be enforced, only observed, or put aside, and retries can be stopped
/// altogether, while the program runs.
///
/// The budget behind it hears of every attempt in every [`Mode`], so that it knows the present when it is enforced
/// again, and what it lent comes back to it, whatever the mode has become meanwhile.
///
/// | mode | a retry passes | what the budget refuses |
/// |---|---|---|
/// | [`Mode::Enforced`] | if the budget pays | is refused |
/// | [`Mode::Observed`] | always | passes, and is [counted](LeverSnapshot::would_have_refused) |
/// | [`Mode::Off`] | always | is not asked |
/// | [`Mode::NoRetries`] | never | is not asked |
///
/// Use [`Mode::Observed`] to bring a budget into a program that runs, before it is trusted. It bounds nothing then, and
/// neither does [`Mode::Off`].
///
/// Lock-free, shared by reference; it costs one load when a retry is asked for, and nothing for a success.
///
/// ```
/// use stagger_core::budget::{Lever, Mode, Tokens};
/// use stagger_core::{Budget, Instant, Kind};
///
/// static BUDGET: Lever<Tokens> = Lever::new(Tokens::new());
///
/// BUDGET.set(Mode::NoRetries);
/// assert!(BUDGET.lend(Kind::Transient, &Instant::ZERO).is_none());
/// assert_eq!(BUDGET.budget().left(), Some(100));
/// ```
#[derive(Debug)]
pub struct Lever<B> {
    budget: B,
    mode: AtomicU64,
    refused: AtomicU64,
    would_have_refused: AtomicU64,
    stopped: AtomicU64,
}

/// Where a [`Lever`] is.
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

/// What a [`Lever`] has counted, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeverSnapshot {
    /// Where it is.
    pub mode: Mode,
    /// Retries that the budget refused while it was enforced.
    pub refused: u64,
    /// Retries that the budget would have refused while it was only observed.
    pub would_have_refused: u64,
    /// Retries that were refused because there shall be none.
    pub stopped: u64,
}

/// Lent without the budget. No budget here lends it: a bucket, a slot and a count are far smaller.
const FREE: Loan = Loan(u64::MAX);

impl Mode {
    const ALL: [Self; 4] = [Self::Enforced, Self::Observed, Self::Off, Self::NoRetries];

    /// It as one lower-case word, for metrics, logs and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Observed => "observed",
            Self::Off => "off",
            Self::NoRetries => "no-retries",
        }
    }

    /// The mode of this [name](Self::name), for a lever that is moved by an environment variable or a file.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl<B> Lever<B> {
    const_unless_loom! {
        /// This budget, enforced.
        #[must_use]
        pub const fn new(budget: B) -> Self {
            Self {
                budget,
                mode: AtomicU64::new(Mode::Enforced as u64),
                refused: AtomicU64::new(0),
                would_have_refused: AtomicU64::new(0),
                stopped: AtomicU64::new(0),
            }
        }
    }

    /// The budget behind it.
    #[must_use]
    pub const fn budget(&self) -> &B {
        &self.budget
    }

    /// Moves it. It holds for every retry that is asked for from now on; those that were lent stay lent.
    pub fn set(&self, mode: Mode) {
        self.mode.store(mode as u64, Ordering::Relaxed);
    }

    /// Where it is.
    #[must_use]
    pub fn mode(&self) -> Mode {
        let seen = self.mode.load(Ordering::Relaxed);
        Mode::ALL.into_iter().find(|&mode| mode as u64 == seen).unwrap_or_default()
    }

    /// What it has counted so far.
    #[must_use]
    pub fn snapshot(&self) -> LeverSnapshot {
        LeverSnapshot {
            mode: self.mode(),
            refused: self.refused.load(Ordering::Relaxed),
            would_have_refused: self.would_have_refused.load(Ordering::Relaxed),
            stopped: self.stopped.load(Ordering::Relaxed),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl<B: Budget> Budget for Lever<B> {
    #[inline]
    fn first(&self, now: &dyn Now) -> Loan {
        self.budget.first(now)
    }

    fn lend(&self, kind: Kind, now: &dyn Now) -> Option<Loan> {
        match self.mode() {
            Mode::Enforced => {
                let loan = self.budget.lend(kind, now);
                if loan.is_none() {
                    count(&self.refused);
                }
                loan
            }
            Mode::Observed => Some(self.budget.lend(kind, now).unwrap_or_else(|| {
                count(&self.would_have_refused);
                FREE
            })),
            Mode::Off => Some(FREE),
            Mode::NoRetries => {
                count(&self.stopped);
                None
            }
        }
    }

    #[inline]
    fn settle(&self, loan: Loan, outcome: &Outcome, now: &dyn Now) {
        self.budget.settle(if loan == FREE { Loan::NOTHING } else { loan }, outcome, now);
    }

    fn give_back(&self, loan: Loan) {
        if loan != FREE {
            self.budget.give_back(loan);
        }
    }

    /// What is left of the budget while it is enforced; nothing while there are no retries; else it does not matter.
    fn left(&self) -> Option<u64> {
        match self.mode() {
            Mode::Enforced => self.budget.left(),
            Mode::Observed | Mode::Off => None,
            Mode::NoRetries => Some(0),
        }
    }
}
