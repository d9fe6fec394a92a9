//! The progress of runs, and how they are cancelled.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// Cancels simulations from another thread. Clones share one state.
///
/// Results that are complete when [`cancel`](Self::cancel) is called are kept. A run that is in progress stops within
/// milliseconds and returns no result.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    cancelled: Arc<AtomicBool>,
}

/// Reports the progress of simulations to other threads, and cancels them through its [`CancelToken`].
///
/// ```
/// use stagger_core::{Policy, Seed};
/// use stagger_sim::{Progress, reconnect::ReconnectScenario};
///
/// let progress = Progress::new();
/// progress.cancel_token().cancel();
/// let scenario = ReconnectScenario::builder(1_000).build()?;
/// assert_eq!(scenario.run_with_progress(&Policy::DEFAULT, Seed::new(1), &progress), None);
/// # Ok::<(), stagger_sim::ScenarioError>(())
/// ```
#[derive(Debug, Default)]
pub struct Progress {
    cancel_token: CancelToken,
    /// The sum over all runs; a complete run counts `RUN`.
    done: AtomicU64,
    planned: AtomicU64,
    started: AtomicU64,
}

/// What one complete run counts: fractions of it are whole numbers, and four billion runs fit into 64 bits.
const RUN: u64 = 1 << 32;

/// A run ended early because its progress was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cancelled;

pub(crate) struct RunProgress<'a> {
    progress: &'a Progress,
    total: u64,
    reported: u64,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the runs in progress and those that have not started. Cannot be undone.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns whether [`cancel`](Self::cancel) has been called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Progress {
    /// Creates a progress of 0 with a new token.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a progress of 0 that is cancelled by `cancel_token`.
    #[must_use]
    pub fn with_cancel_token(cancel_token: CancelToken) -> Self {
        Self { cancel_token, ..Self::default() }
    }

    /// Returns the token that cancels the runs.
    #[must_use]
    pub const fn cancel_token(&self) -> &CancelToken {
        &self.cancel_token
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel_token.is_cancelled()
    }

    /// Returns the fraction of the work that is done, in 0..=1; 0 if no run has started.
    ///
    /// Within a run, the clients that are finished are counted, so the last clients take longer than the first.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        let runs = self.planned.load(Ordering::Relaxed).max(self.started.load(Ordering::Relaxed)).max(1);
        self.done.load(Ordering::Relaxed) as f64 / (runs as f64 * RUN as f64)
    }

    pub(crate) fn plan(&self, runs: usize) {
        self.planned.fetch_add(runs as u64, Ordering::Relaxed);
    }

    /// Starts a run with `total` units of work.
    pub(crate) fn start_run(&self, total: u64) -> RunProgress<'_> {
        self.started.fetch_add(1, Ordering::Relaxed);
        RunProgress { progress: self, total: total.max(1), reported: 0 }
    }
}

impl RunProgress<'_> {
    /// Reports that `finished` units are done in total. Returns an error if the run is cancelled.
    pub(crate) fn report(&mut self, finished: u64) -> Result<(), Cancelled> {
        let share = (u128::from(RUN) * u128::from(finished.min(self.total)) / u128::from(self.total)) as u64;
        self.progress.done.fetch_add(share - self.reported, Ordering::Relaxed);
        self.reported = share;
        if self.progress.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}
