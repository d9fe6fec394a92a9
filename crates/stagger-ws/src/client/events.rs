//! What a client reports, and the events that it has not read yet.

use core::task::{Context, Poll};
use core::time::Duration;

use futures_channel::mpsc::Sender;
use http::Response;
use stagger::machine::Unreachable;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::failure::{Closed, Fatal};

/// Something that happened to a client. Events are delivered in order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A connection was opened.
    Open(Opened),
    /// A text or binary message was received.
    Message(Message),
    /// An attempt failed, or the connection was lost.
    ///
    /// Unread events of this kind are coalesced: only the latest is kept.
    Closed(Closed),
    /// The server could not be reached for ten attempts in a row, or for twice as long as at the last event of this
    /// kind. The client continues to reconnect: show it to the user until the next [`Open`](Self::Open).
    ///
    /// Comes after the [`Closed`](Self::Closed) of the attempt. Unread events of this kind are coalesced.
    Unreachable(Unreachable),
    /// Messages were dropped unsent: evicted by newer ones, expired, or lost with the connection.
    Dropped {
        /// The number of messages dropped since the last event of this kind.
        messages: u64,
    },
}

/// The details of an opened connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The number of the attempt that opened it, from 1. The count restarts after a healthy connection.
    pub attempt: u32,
    /// The server's response to the upgrade request.
    pub response: Response<()>,
    /// Time without a connection before this one; `None` for the first connection.
    pub downtime: Option<Duration>,
    /// Whether the server resumed where the last connection ended. Always `false` without a [`Resume`](crate::Resume).
    pub resumed: bool,
    /// The number of unacknowledged messages that are sent again. Always 0 without an
    /// [`AckedClient`](crate::AckedClient).
    pub resent: usize,
}

/// The connection state of a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConnectionState {
    /// An attempt is in progress.
    Connecting {
        /// For how long and how many attempts the server could not be reached, if at least ten attempts in a row have
        /// failed.
        unreachable: Option<Unreachable>,
    },
    /// The client is connected.
    Open,
    /// The client is waiting for the next attempt.
    Waiting {
        /// The time of the next attempt.
        until: Instant,
        /// As while [connecting](Self::Connecting).
        unreachable: Option<Unreachable>,
    },
    /// The client has stopped. With an error, it gave up. Without one, the server ended the connection normally, or the
    /// client was closed.
    ///
    /// [`Handle::reconnect_now`](crate::Handle::reconnect_now) restarts the client unless it was closed.
    Closed(Option<Fatal>),
}

/// An item in the channel to the client.
#[derive(Debug)]
pub(super) enum Delivery {
    Event(Event),
    /// The stream ends here, unless there have been more reconnect requests than this.
    End(Option<Fatal>, u64),
}

/// Events that do not fit into the channel because the client is not reading. At most one of each kind is kept: an
/// opened connection that is lost before the client reads it is not reported. So the connection task never waits for
/// its reader, and a client that sends without reading is not blocked.
#[derive(Debug, Default)]
pub(super) struct EventBuffer {
    closed: Option<Closed>,
    unreachable: Option<Unreachable>,
    dropped: u64,
    open: Option<Opened>,
    end: Option<Delivery>,
}

impl EventBuffer {
    pub(super) fn closed(&mut self, closed: Closed) {
        self.open = None;
        self.closed = Some(closed);
    }

    pub(super) fn unreachable(&mut self, unreachable: Unreachable) {
        self.unreachable = Some(unreachable);
    }

    pub(super) fn opened(&mut self, opened: Opened) {
        self.unreachable = None;
        self.open = Some(opened);
    }

    pub(super) fn dropped(&mut self, messages: u64) {
        self.dropped = self.dropped.saturating_add(messages);
    }

    pub(super) fn end(&mut self, fatal: Option<Fatal>, reconnect_requests: u64) {
        self.end = Some(Delivery::End(fatal, reconnect_requests));
    }

    /// Removes an unread end of stream, because the client reconnects.
    pub(super) fn cancel_end(&mut self) {
        self.end = None;
    }

    /// Delivers what there is room for. Ready when the buffer is empty and there is room for a message; never ready if
    /// the client was dropped.
    pub(super) fn poll_deliver(&mut self, events: &mut Sender<Delivery>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match events.poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) | Poll::Pending => return Poll::Pending,
            }
            let Some(delivery) = self.next() else { return Poll::Ready(()) };
            // Cannot fail: there was room, and this is the only sender.
            let _ = events.start_send(delivery);
        }
    }

    /// Returns the next event. Dropped messages come first; a loss comes before the next connection.
    fn next(&mut self) -> Option<Delivery> {
        // The order does not depend on which came first: that is not known any more.
        let event = if self.dropped > 0 {
            Event::Dropped { messages: core::mem::take(&mut self.dropped) }
        } else if let Some(closed) = self.closed.take() {
            Event::Closed(closed)
        } else if let Some(unreachable) = self.unreachable.take() {
            Event::Unreachable(unreachable)
        } else if let Some(opened) = self.open.take() {
            Event::Open(opened)
        } else {
            return self.end.take();
        };
        Some(Delivery::Event(event))
    }
}
