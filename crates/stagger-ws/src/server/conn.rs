use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use super::sockets::Shared;
use super::{Closing, Socket};

/// A connection that was let in: its place, and what it is told.
///
/// Dropped, in whatever way, it gives the place back and is counted among those that are closed. [`guard`](Self::guard) makes
/// a [`Socket`] of it, which does the rest by itself; an application that has another kind of WebSocket keeps it beside that
/// for as long as the connection lasts, and selects on [`closing`](Self::closing).
#[must_use = "dropped, it is a connection that has ended"]
pub struct Conn {
    shared: Arc<Shared>,
    id: u64,
    told: Told,
    /// The code of the first close frame.
    code: Option<u16>,
    asked: Instant,
    /// Given back after the connection is counted as closed, so that nobody is let in before.
    _permit: OwnedSemaphorePermit,
}

enum Told {
    NotYet(oneshot::Receiver<Closing>),
    Leave(Closing),
    /// It was told, and did not answer in time.
    Unanswered,
}

impl Conn {
    pub(super) fn new(
        shared: Arc<Shared>,
        (id, tell): (u64, oneshot::Receiver<Closing>),
        permit: OwnedSemaphorePermit,
        asked: Instant,
    ) -> Self {
        Self { shared, id, told: Told::NotYet(tell), code: None, asked, _permit: permit }
    }

    /// Takes care of a WebSocket from its beginning to its end. The upgrade is complete when this is called.
    pub fn guard<W>(self, socket: W) -> Socket<W> {
        self.shared.upgraded(self.asked.elapsed());
        Socket::new(socket, self)
    }

    /// Waits until a drain comes to this connection, and has what to close it with. For those who do not
    /// [`guard`](Self::guard) it: send [`Closing::frame`], read until the client closes, for as long as you like to wait, and
    /// drop this.
    ///
    /// Cancel-safe; once it is ready, it always is.
    pub async fn closing(&mut self) -> Closing {
        poll_fn(|cx| self.poll_closing(cx)).await
    }

    pub(super) fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<Closing> {
        match &mut self.told {
            Told::NotYet(tell) => match Pin::new(tell).poll(cx) {
                Poll::Ready(Ok(closing)) => {
                    self.told = Told::Leave(closing);
                    Poll::Ready(closing)
                }
                // The roll is ours, and takes a name off only to tell it.
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            },
            Told::Leave(closing) => Poll::Ready(*closing),
            Told::Unanswered => Poll::Pending,
        }
    }

    /// The same without waiting.
    pub(super) fn try_closing(&mut self) -> Option<Closing> {
        if let Told::NotYet(tell) = &mut self.told {
            self.told = Told::Leave(tell.try_recv().ok()?);
        }
        match self.told {
            Told::Leave(closing) => Some(closing),
            _ => None,
        }
    }

    /// A close frame was sent or received; the first one counts.
    pub(super) fn closes_with(&mut self, code: u16) {
        self.code.get_or_insert(code);
    }

    pub(super) fn unanswered(&mut self) {
        self.told = Told::Unanswered;
    }

    pub(super) fn reaped(&self) {
        self.shared.counts.reaped();
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "stagger", target_name = &*self.shared.settings.name, "reaped");
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Bits of its own.
    pub(super) fn bits(&self) -> u64 {
        self.shared.bits(self.id)
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        // It may have been told and not have looked.
        self.try_closing();
        let counts = &self.shared.counts;
        match self.told {
            Told::NotYet(_) => {}
            Told::Leave(_) => counts.left(),
            Told::Unanswered => counts.dropped(),
        }
        counts.closed(self.code);
        self.shared.roll.leave(self.id);
    }
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conn").field("id", &self.id).finish_non_exhaustive()
    }
}
