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
    done: AtomicU64,
    whole: AtomicU64,
}

/// What a run has told of its progress already.
pub(crate) struct Seen(u64);

impl Watch {
    /// Nothing has begun.
    #[must_use]
    pub const fn new() -> Self {
        Self { cancelled: AtomicBool::new(false), done: AtomicU64::new(0), whole: AtomicU64::new(0) }
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

    /// The share that is done, in 0..=1; 0 if nothing has begun. It counts clients that are through.
    #[must_use]
    pub fn share(&self) -> f64 {
        match self.whole.load(Ordering::Relaxed) {
            0 => 0.0,
            whole => (self.done.load(Ordering::Relaxed) as f64 / whole as f64).min(1.0),
        }
    }

    /// So much more is to be done.
    pub(crate) fn expect(&self, whole: u64) {
        self.whole.fetch_add(whole, Ordering::Relaxed);
    }

    pub(crate) const fn begin(&self) -> Seen {
        Seen(0)
    }

    /// Tells the progress of a run, and asks whether it shall go on.
    pub(crate) fn look(&self, seen: &mut Seen, progress: u64) -> Result<(), Interrupted> {
        self.done.fetch_add(progress - core::mem::replace(&mut seen.0, progress), Ordering::Relaxed);
        if self.is_cancelled() { Err(Interrupted) } else { Ok(()) }
    }
}
