use core::fmt;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until, timeout};

use super::connections::shared::Shared;
use super::drain::plan::{Batches, Drain};
use super::drain::state::{CloseRequest, DrainState};
use crate::instant::saturating_add;

/// Extra time after the last close timeout, in which tasks notice that their connection has ended.
const GRACE: Duration = Duration::from_secs(1);

/// The progress of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainProgress {
    /// Connections when the drain began.
    pub total: usize,
    /// Connections that were asked to close.
    pub notified: usize,
    /// Connections that are still open, whether asked to close or not. A connection that remains at the end is held by
    /// a task that does not poll it.
    pub remaining: usize,
    /// The drain is done: no connection is left, or the remaining ones did not end in time.
    pub done: bool,
}

/// A handle to a drain that runs in the background, for watching it and for closing the remaining connections. Clones
/// refer to the same drain.
#[derive(Clone)]
pub struct DrainHandle {
    drain: Arc<DrainState>,
    shared: Arc<Shared>,
}

impl DrainHandle {
    pub(super) const fn new(drain: Arc<DrainState>, shared: Arc<Shared>) -> Self {
        Self { drain, shared }
    }

    pub(super) async fn run(self, plan: Drain) {
        let Self { drain, shared } = &self;
        let (settings, registry) = (&shared.settings, &shared.registry);
        let Batches { size, every } = plan.schedule(drain.total);
        let mut next_batch = Instant::now();
        #[cfg(feature = "tracing")]
        tracing::info!(target: "stagger", target_name = &*settings.name, total = drain.total, "draining");
        loop {
            let max = if drain.is_closing_remaining.load(Ordering::Acquire) { usize::MAX } else { size };
            let batch = registry.take_batch(max);
            let request = CloseRequest::new(drain.reserve(batch.len()));
            drain.notified.fetch_add(batch.len(), Ordering::Relaxed);
            for connection in batch {
                // An error means that the connection has ended.
                let _ = connection.send(request);
            }
            if registry.all_notified() {
                break;
            }
            // After a delay, the next batches are not made larger to catch up.
            next_batch = saturating_add(next_batch.max(Instant::now()), every);
            tokio::select! {
                () = sleep_until(next_batch) => {}
                () = drain.close_now.notified() => {}
            }
        }
        let _ = timeout(settings.close_timeout.saturating_add(GRACE), registry.all_closed()).await;
        #[cfg(feature = "tracing")]
        tracing::info!(target: "stagger", target_name = &*settings.name, remaining = registry.active(), "drained");
        drain.done.send_replace(true);
    }

    /// Returns the current progress.
    #[must_use]
    pub fn progress(&self) -> DrainProgress {
        DrainProgress {
            total: self.drain.total,
            notified: self.drain.notified.load(Ordering::Relaxed),
            remaining: self.shared.registry.active(),
            done: *self.drain.done.borrow(),
        }
    }

    /// Asks all remaining connections to close immediately. Their clients still reconnect at the planned rate, so the
    /// load on the next server does not change.
    pub fn close_remaining(&self) {
        self.drain.is_closing_remaining.store(true, Ordering::Release);
        self.drain.close_now.notify_one();
    }

    /// Waits until the drain is done: all connections have ended, or the close timeout plus one second has passed since
    /// the last close was requested.
    ///
    /// Cancel-safe: the drain continues if the future is dropped.
    pub async fn done(&self) -> DrainProgress {
        self.drain.done().await;
        self.progress()
    }
}

impl fmt::Debug for DrainHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DrainHandle").field(&self.progress()).finish()
    }
}
