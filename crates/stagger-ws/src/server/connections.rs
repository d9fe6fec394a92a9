//! The open connections: the permit that each of them holds, and their registry.

use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use stagger::Seed;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use super::builder::SocketsBuilder;
use super::closing::ClosingSlots;
use super::counters::Counters;
use super::drain::{CloseRequest, DrainState};
use crate::sync::{lock, wait_until};

/// A drop guard for an admitted connection. Holds its slot, and reports when a drain asks it to close.
///
/// Dropping it releases the slot and counts the connection as closed. [`wrap`](Self::wrap) turns it and a WebSocket
/// into a [`Socket`](super::Socket), which handles everything else. To use another kind of WebSocket, keep the permit
/// for as long as the connection lasts, and select on [`close_requested`](Self::close_requested).
#[must_use = "dropping the permit ends the connection"]
pub struct ConnectionPermit {
    shared: Arc<ServerState>,
    id: u64,
    close: CloseState,
    /// The code of the first close frame.
    code: Option<u16>,
    requested_at: Instant,
    /// Released after the connection is counted as closed, so that no connection is admitted before that.
    _slot: OwnedSemaphorePermit,
}

enum CloseState {
    Open(oneshot::Receiver<CloseRequest>),
    Requested(CloseRequest),
    /// The client did not reply to the close in time.
    TimedOut,
}

impl ConnectionPermit {
    pub(super) fn new(
        shared: Arc<ServerState>,
        (id, receiver): (u64, oneshot::Receiver<CloseRequest>),
        slot: OwnedSemaphorePermit,
        requested_at: Instant,
    ) -> Self {
        Self { shared, id, close: CloseState::Open(receiver), code: None, requested_at, _slot: slot }
    }

    /// Waits until a drain asks this connection to close. For connections that are not [wrapped](Self::wrap): send
    /// [`CloseRequest::to_message`], read until the client closes or your own timeout elapses, and drop the permit.
    ///
    /// Cancel-safe. Once it has returned, further calls return immediately.
    pub async fn close_requested(&mut self) -> CloseRequest {
        poll_fn(|cx| self.poll_close_requested(cx)).await
    }

    pub(super) fn poll_close_requested(&mut self, cx: &mut Context<'_>) -> Poll<CloseRequest> {
        match &mut self.close {
            CloseState::Open(receiver) => match Pin::new(receiver).poll(cx) {
                Poll::Ready(Ok(request)) => {
                    self.close = CloseState::Requested(request);
                    Poll::Ready(request)
                }
                // The sender is dropped only after sending.
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            },
            CloseState::Requested(request) => Poll::Ready(*request),
            CloseState::TimedOut => Poll::Pending,
        }
    }

    /// Returns the close request if there is one, without waiting.
    pub(super) fn try_close_requested(&mut self) -> Option<CloseRequest> {
        if let CloseState::Open(receiver) = &mut self.close {
            self.close = CloseState::Requested(receiver.try_recv().ok()?);
        }
        match self.close {
            CloseState::Requested(request) => Some(request),
            _ => None,
        }
    }

    /// Records the code of a close frame that was sent or received. The first one counts.
    pub(super) fn record_close_code(&mut self, code: u16) {
        self.code.get_or_insert(code);
    }

    pub(super) fn close_timed_out(&mut self) {
        self.close = CloseState::TimedOut;
    }

    pub(super) fn upgraded(&self) {
        let took = self.requested_at.elapsed();
        self.shared.counters.upgraded(took);
        #[cfg(feature = "metrics")]
        metrics::histogram!("stagger_ws_upgrade_seconds", "target" => self.shared.settings.name.to_string())
            .record(took);
    }

    pub(super) fn reaped(&self) {
        self.shared.counters.reaped.increment();
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "stagger", target_name = &*self.shared.settings.name, "reaped");
    }

    pub(super) fn shared(&self) -> &ServerState {
        &self.shared
    }

    /// Returns random bits that are specific to this connection.
    pub(super) fn random_bits(&self) -> u64 {
        self.shared.seed.for_call(self.id).get()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        // A request may have arrived that was never polled.
        self.try_close_requested();
        let counters = &self.shared.counters;
        match self.close {
            CloseState::Open(_) => {}
            CloseState::Requested(_) => counters.drained_in_time.increment(),
            CloseState::TimedOut => counters.drained_timed_out.increment(),
        }
        counters.closed(self.code);
        self.shared.registry.deregister(self.id);
    }
}

impl fmt::Debug for ConnectionPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPermit").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The open connections of a server.
#[derive(Default)]
pub(super) struct ConnectionRegistry {
    state: Mutex<RegistryState>,
    drain_begun: Notify,
    /// All open connections, notified or not.
    active: AtomicUsize,
    idle: Notify,
}

#[derive(Default)]
struct RegistryState {
    /// Connections that have not been asked to close, oldest first.
    open: BTreeMap<u64, oneshot::Sender<CloseRequest>>,
    next_id: u64,
    drain: Option<Arc<DrainState>>,
}

impl ConnectionRegistry {
    /// Registers a connection, unless a drain has begun. Both checks are under one lock; otherwise a connection could
    /// be missed by the drain.
    pub(super) fn register(&self) -> Result<(u64, oneshot::Receiver<CloseRequest>), Arc<DrainState>> {
        let mut state = lock(&self.state);
        if let Some(drain) = &state.drain {
            return Err(Arc::clone(drain));
        }
        let id = state.next_id;
        state.next_id += 1;
        let (notify, close_request) = oneshot::channel();
        state.open.insert(id, notify);
        self.active.fetch_add(1, Ordering::Relaxed);
        Ok((id, close_request))
    }

    fn deregister(&self, id: u64) {
        let open = lock(&self.state).open.remove(&id);
        drop(open);
        if self.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.idle.notify_waiters();
        }
    }

    pub(super) fn drain(&self) -> Option<Arc<DrainState>> {
        lock(&self.state).drain.clone()
    }

    /// Begins a drain (`Ok`), or returns the one in progress (`Err`).
    pub(super) fn begin_drain(
        &self,
        drain: impl FnOnce(usize) -> DrainState,
    ) -> Result<Arc<DrainState>, Arc<DrainState>> {
        let mut state = lock(&self.state);
        if let Some(drain) = &state.drain {
            return Err(Arc::clone(drain));
        }
        let drain = Arc::new(drain(state.open.len()));
        state.drain = Some(Arc::clone(&drain));
        drop(state);
        self.drain_begun.notify_waiters();
        Ok(drain)
    }

    /// Waits until a drain has begun and is done.
    pub(super) async fn drained(&self) {
        wait_until(&self.drain_begun, || self.drain()).await.done().await;
    }

    /// Removes the senders of the oldest connections, up to `max`, for notifying them.
    pub(super) fn take_batch(&self, max: usize) -> Vec<oneshot::Sender<CloseRequest>> {
        let mut state = lock(&self.state);
        let count = max.min(state.open.len());
        core::iter::from_fn(|| state.open.pop_first()).take(count).map(|(_, notify)| notify).collect()
    }

    /// Returns whether all connections have been asked to close.
    pub(super) fn all_notified(&self) -> bool {
        lock(&self.state).open.is_empty()
    }

    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::Acquire)
    }

    pub(super) async fn all_closed(&self) {
        wait_until(&self.idle, || if self.active() == 0 { Some(()) } else { None }).await;
    }
}

/// The state that all connections of a server share.
pub(super) struct ServerState {
    pub(super) settings: SocketsBuilder,
    pub(super) counters: Counters,
    pub(super) registry: ConnectionRegistry,
    pub(super) slots: Arc<Semaphore>,
    /// For rejected clients whose WebSocket is being closed.
    pub(super) closing: Arc<ClosingSlots>,
    pub(super) seed: Seed,
}
