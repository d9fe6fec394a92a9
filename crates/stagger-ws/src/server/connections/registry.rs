//! The registry of open connections, and the order in which a drain closes them.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, oneshot};

use crate::server::drain::state::{CloseRequest, DrainState};
use crate::sync::{lock, wait_until};

/// The open connections of a server.
#[derive(Default)]
pub(in crate::server) struct ConnectionRegistry {
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
    pub(in crate::server) fn register(&self) -> Result<(u64, oneshot::Receiver<CloseRequest>), Arc<DrainState>> {
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

    pub(in crate::server) fn deregister(&self, id: u64) {
        let open = lock(&self.state).open.remove(&id);
        drop(open);
        if self.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.idle.notify_waiters();
        }
    }

    pub(in crate::server) fn drain(&self) -> Option<Arc<DrainState>> {
        lock(&self.state).drain.clone()
    }

    /// Begins a drain (`Ok`), or returns the one in progress (`Err`).
    pub(in crate::server) fn begin_drain(
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
    pub(in crate::server) async fn drained(&self) {
        wait_until(&self.drain_begun, || self.drain()).await.done().await;
    }

    /// Removes the senders of the oldest connections, up to `max`, for notifying them.
    pub(in crate::server) fn take_batch(&self, max: usize) -> Vec<oneshot::Sender<CloseRequest>> {
        let mut state = lock(&self.state);
        let count = max.min(state.open.len());
        core::iter::from_fn(|| state.open.pop_first()).take(count).map(|(_, notify)| notify).collect()
    }

    /// Returns whether all connections have been asked to close.
    pub(in crate::server) fn all_notified(&self) -> bool {
        lock(&self.state).open.is_empty()
    }

    pub(in crate::server) fn active(&self) -> usize {
        self.active.load(Ordering::Acquire)
    }

    pub(in crate::server) async fn all_closed(&self) {
        wait_until(&self.idle, || (self.active() == 0).then_some(())).await;
    }
}
