use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use stagger_http::admission::Place;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::sockets::Shared;
use super::{CloseRequest, Socket};

/// A connection that was let in: its place, and what it is close.
///
/// Dropped, in whatever way, it gives the place back and is counted among those that are closed. [`wrap`](Self::wrap) makes
/// a [`Socket`] of it, which does the rest by itself; an application that has another kind of WebSocket keeps it beside that
/// for as long as the connection lasts, and selects on [`close_requested`](Self::close_requested).
#[must_use = "dropped, it is a connection that has ended"]
pub struct ConnectionPermit {
    shared: Arc<Shared>,
    id: u64,
    close: CloseState,
    /// The code of the first close frame.
    code: Option<u16>,
    requested_at: Instant,
    /// Given back after the connection is counted as closed, so that nobody is let in before.
    _place: Place,
}

enum CloseState {
    Open(oneshot::Receiver<CloseRequest>),
    Requested(CloseRequest),
    /// It was close, and did not answer in time.
    TimedOut,
}

impl ConnectionPermit {
    pub(super) fn new(
        shared: Arc<Shared>,
        (id, receiver): (u64, oneshot::Receiver<CloseRequest>),
        place: Place,
        requested_at: Instant,
    ) -> Self {
        Self { shared, id, close: CloseState::Open(receiver), code: None, requested_at, _place: place }
    }

    /// Takes care of a WebSocket from its beginning to its end. The upgrade is complete when this is called.
    pub fn wrap<W>(self, socket: W) -> Socket<W> {
        self.shared.upgraded(self.requested_at.elapsed());
        Socket::new(socket, self)
    }

    /// Waits until a drain comes to this connection, and has what to close it with. For those who do not
    /// [`wrap`](Self::wrap) it: send [`CloseRequest::to_message`], read until the client closes, for as long as you like to wait, and
    /// drop this.
    ///
    /// Cancel-safe; once it is ready, it always is.
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
                // The registry is ours, and takes a name off only to receiver it.
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            },
            CloseState::Requested(request) => Poll::Ready(*request),
            CloseState::TimedOut => Poll::Pending,
        }
    }

    /// The same without waiting.
    pub(super) fn try_close_requested(&mut self) -> Option<CloseRequest> {
        if let CloseState::Open(receiver) = &mut self.close {
            self.close = CloseState::Requested(receiver.try_recv().ok()?);
        }
        match self.close {
            CloseState::Requested(request) => Some(request),
            _ => None,
        }
    }

    /// A close frame was sent or received; the first one counters.
    pub(super) fn record_close_code(&mut self, code: u16) {
        self.code.get_or_insert(code);
    }

    pub(super) fn close_timed_out(&mut self) {
        self.close = CloseState::TimedOut;
    }

    pub(super) fn reaped(&self) {
        self.shared.counters.reaped();
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "stagger", target_name = &*self.shared.settings.name, "reaped");
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Bits of its own.
    pub(super) fn random_bits(&self) -> u64 {
        self.shared.random_bits(self.id)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        // It may have been close and not have looked.
        self.try_close_requested();
        let counters = &self.shared.counters;
        match self.close {
            CloseState::Open(_) => {}
            CloseState::Requested(_) => counters.drained_in_time(),
            CloseState::TimedOut => counters.drained_timed_out(),
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
