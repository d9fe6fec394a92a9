use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use super::shared::Shared;
use crate::server::drain::state::CloseRequest;

/// A drop guard for an admitted connection. Holds its slot, and reports when a drain asks it to close.
///
/// Dropping it releases the slot and counts the connection as closed. [`wrap`](Self::wrap) turns it and a WebSocket
/// into a [`Socket`](crate::server::Socket), which handles everything else. To use another kind of WebSocket, keep the permit for as long as
/// the connection lasts, and select on [`close_requested`](Self::close_requested).
#[must_use = "dropping the permit ends the connection"]
pub struct ConnectionPermit {
    shared: Arc<Shared>,
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
    pub(in crate::server) fn new(
        shared: Arc<Shared>,
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

    pub(in crate::server) fn poll_close_requested(&mut self, cx: &mut Context<'_>) -> Poll<CloseRequest> {
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
    pub(in crate::server) fn try_close_requested(&mut self) -> Option<CloseRequest> {
        if let CloseState::Open(receiver) = &mut self.close {
            self.close = CloseState::Requested(receiver.try_recv().ok()?);
        }
        match self.close {
            CloseState::Requested(request) => Some(request),
            _ => None,
        }
    }

    /// Records the code of a close frame that was sent or received. The first one counts.
    pub(in crate::server) fn record_close_code(&mut self, code: u16) {
        self.code.get_or_insert(code);
    }

    pub(in crate::server) fn close_timed_out(&mut self) {
        self.close = CloseState::TimedOut;
    }

    pub(in crate::server) fn upgraded(&self) {
        let took = self.requested_at.elapsed();
        self.shared.counters.upgraded(took);
        #[cfg(feature = "metrics")]
        metrics::histogram!("stagger_ws_upgrade_seconds", "target" => self.shared.settings.name.to_string())
            .record(took);
    }

    pub(in crate::server) fn reaped(&self) {
        self.shared.counters.reaped.increment();
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "stagger", target_name = &*self.shared.settings.name, "reaped");
    }

    pub(in crate::server) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns random bits that are specific to this connection.
    pub(in crate::server) fn random_bits(&self) -> u64 {
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
