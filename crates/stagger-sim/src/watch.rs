use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::engine::Interrupted;

/// How far runs are, and the way to stop them, from another thread.
///
/// What was finished before [`cancel`](Self::cancel) is kept; a run that is underway ends within milliseconds and leaves
/// nothing behind.
///
/// ```
/// use stagger_core::{Policy, Seed};
/// use stagger_sim::{Watch, reconnect::Scenario};
///
/// let watch = Watch::new();
/// watch.cancel();
/// let scenario = Scenario::builder(1_000).build()?;
/// assert_eq!(scenario.watched(&Policy::DEFAULT, Seed::new(1), &watch), None);
/// # Ok::<(), stagger_sim::ScenarioError>(())
/// ```
#[derive(Debug, Default)]
pub struct Watch {
    cancelled: AtomicBool,
    /// Of all runs together; a run is `RUN`.
    done: AtomicU64,
    planned: AtomicU64,
    begun: AtomicU64,
}

/// What one run counts: shares of it are whole numbers, and four billion runs have room.
const RUN: u64 = 1 << 32;

/// One run, and what it has told of its progress already.
pub(crate) struct Progress<'a> {
    watch: &'a Watch,
    whole: u64,
    told: u64,
}

impl Watch {
    /// Nothing has begun.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cancelled: AtomicBool::new(false),
            done: AtomicU64::new(0),
            planned: AtomicU64::new(0),
            begun: AtomicU64::new(0),
        }
    }

    /// Stops what is underway, and what would begin later.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The share that is done, in 0..=1; 0 if nothing has begun. Of a run it counts the clients that are through, so the
    /// last of them take longer than the first.
    #[must_use]
    pub fn share(&self) -> f64 {
        let runs = self.planned.load(Ordering::Relaxed).max(self.begun.load(Ordering::Relaxed)).max(1);
        self.done.load(Ordering::Relaxed) as f64 / (runs as f64 * RUN as f64)
    }

    /// So many runs are to be made.
    pub(crate) fn plan(&self, runs: usize) {
        self.planned.fetch_add(runs as u64, Ordering::Relaxed);
    }

    /// A run begins in which so many are to come through.
    pub(crate) fn begin(&self, whole: u64) -> Progress<'_> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Progress { watch: self, whole: whole.max(1), told: 0 }
    }
}

impl Progress<'_> {
    /// Tells how many are through, and asks whether to go on.
    pub(crate) fn tell(&mut self, through: u64) -> Result<(), Interrupted> {
        let share = (u128::from(RUN) * u128::from(through) / u128::from(self.whole)) as u64;
        self.watch.done.fetch_add(share - self.told, Ordering::Relaxed);
        self.told = share;
        if self.watch.is_cancelled() { Err(Interrupted) } else { Ok(()) }
    }
}
