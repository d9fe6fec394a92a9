use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use stagger::{Clock as _, Tokio};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::Drain;
use super::plan::Batches;
use super::return_schedule::ReturnSchedule;
use crate::ReconnectAdvice;
use crate::server::SocketMessage;
use crate::server::sockets::Shared;

/// RFC 6455's registry: "Service Restart".
const SERVICE_RESTART: u16 = 1012;
/// How long beyond the time of the last close everybody may take to be gone: a task has to notice.
const GRACE: Duration = Duration::from_secs(1);

/// What a connection that is to end is closed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseRequest {
    /// The code: 1012, service restart.
    pub code: u16,
    /// When the client is to come back.
    pub advice: ReconnectAdvice,
}

impl CloseRequest {
    /// The close frame.
    #[must_use]
    pub fn to_message<M: SocketMessage>(&self) -> M {
        M::close(self.code, self.advice.to_reason())
    }
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainProgress {
    /// Connections at its beginning.
    pub total: usize,
    /// Those that were notified to leave.
    pub notified: usize,
    /// Those that are still there, notified or not. What has not gone by the end is held by a task that nothing has woken.
    pub remaining: usize,
    /// It is over: nobody is left, or who is left has not gone in time.
    pub done: bool,
}

/// A drain underway, by itself: this is only a look at it, and a way to close_now it. Its clones are looks at the same.
#[derive(Clone)]
pub struct DrainHandle {
    drain: Arc<DrainState>,
    shared: Arc<Shared>,
}

/// What there is of a drain while it goes.
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

    /// When the next so count come back.
    pub(in crate::server) fn reserve(&self, count: usize) -> ReconnectAdvice {
        // A line that a panic left behind is still a line.
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner).reserve(count, Tokio.now())
    }

    pub(in crate::server) async fn done(&self) {
        // The sender is ours, so it is there.
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
                // Who has gone meanwhile need not be notified.
                let _ = connection.send(request);
            }
            if registry.all_notified() {
                break;
            }
            // A machine that was late is not to make up for it by larger batches.
            next_batch = next_batch.max(Instant::now()) + every;
            tokio::select! {
                () = sleep_until(next_batch) => {}
                () = drain.close_now.notified() => {}
            }
        }
        let _ = timeout(settings.close_timeout.saturating_add(GRACE), registry.all_closed()).await;
        #[cfg(feature = "tracing")]
        tracing::info!(target: "stagger", target_name = &*settings.name, left = registry.active(), "drained");
        drain.done.send_replace(true);
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> DrainProgress {
        DrainProgress {
            total: self.drain.total,
            notified: self.drain.notified.load(Ordering::Relaxed),
            remaining: self.shared.registry.active(),
            done: *self.drain.done.borrow(),
        }
    }

    /// Tells all who are left at once. Each is still notified to come back at its place in the line, so this is for the next
    /// server as gentle as the plan.
    pub fn close_remaining(&self) {
        self.drain.is_closing_remaining.store(true, Ordering::Release);
        self.drain.close_now.notify_one();
    }

    /// Waits until it is over: everybody is gone, or has not gone within the time for a close, and a second.
    ///
    /// Cancel-safe; the drain goes on without it.
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
