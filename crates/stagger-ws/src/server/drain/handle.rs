use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use stagger::time::{Clock as _, Tokio};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::plan::{Batches, Drain};
use super::return_schedule::ReturnSchedule;
use crate::advice::ReconnectAdvice;
use crate::server::message::SocketMessage;
use crate::server::sockets::Shared;

/// The close code "Service Restart" of the IANA registry.
const SERVICE_RESTART: u16 = 1012;
/// Extra time after the last close timeout, in which tasks notice that their connection has ended.
const GRACE: Duration = Duration::from_secs(1);

/// A drain's request to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseRequest {
    /// The close code: 1012, service restart.
    pub code: u16,
    /// When the client should reconnect.
    pub advice: ReconnectAdvice,
}

impl CloseRequest {
    /// Creates the close frame.
    #[must_use]
    pub fn to_message<M: SocketMessage>(&self) -> M {
        M::close(self.code, self.advice.to_reason())
    }
}

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

/// The state of a drain in progress.
pub(in crate::server) struct DrainState {
    schedule: Mutex<ReturnSchedule>,
    total: usize,
    notified: AtomicUsize,
    is_closing_remaining: AtomicBool,
    close_now: Notify,
    done: watch::Sender<bool>,
}

impl DrainState {
    pub(in crate::server) fn new(plan: &Drain, total: usize) -> Self {
        Self {
            schedule: Mutex::new(plan.return_schedule(total, Tokio.now())),
            total,
            notified: AtomicUsize::new(0),
            is_closing_remaining: AtomicBool::new(false),
            close_now: Notify::new(),
            done: watch::Sender::new(false),
        }
    }

    /// Reserves return times for the next `count` clients.
    pub(in crate::server) fn reserve(&self, count: usize) -> ReconnectAdvice {
        // The schedule is valid even if a panic poisoned the lock.
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner).reserve(count, Tokio.now())
    }

    pub(in crate::server) async fn done(&self) {
        // `self` owns the sender, so it is not closed.
        let _ = self.done.subscribe().wait_for(|done| *done).await;
    }
}

impl DrainHandle {
    pub(in crate::server) const fn new(drain: Arc<DrainState>, shared: Arc<Shared>) -> Self {
        Self { drain, shared }
    }

    pub(in crate::server) async fn run(self, plan: Drain) {
        let Self { drain, shared } = &self;
        let (settings, registry) = (&shared.settings, &shared.registry);
        let Batches { size, every } = plan.schedule(drain.total);
        let mut next_batch = Instant::now();
        #[cfg(feature = "tracing")]
        tracing::info!(target: "stagger", target_name = &*settings.name, total = drain.total, "draining");
        loop {
            let max = if drain.is_closing_remaining.load(Ordering::Acquire) { usize::MAX } else { size };
            let batch = registry.take_batch(max);
            let request = CloseRequest { code: SERVICE_RESTART, advice: drain.reserve(batch.len()) };
            drain.notified.fetch_add(batch.len(), Ordering::Relaxed);
            for connection in batch {
                // An error means that the connection has ended.
                let _ = connection.send(request);
            }
            if registry.all_notified() {
                break;
            }
            // After a delay, the next batches are not made larger to catch up.
            next_batch = next_batch.max(Instant::now()) + every;
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
