use core::time::Duration;

use http::Response;
use stagger::machine::Unreachable;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use crate::client::failure::closed::Closed;
use crate::client::failure::fatal::Fatal;

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
    /// The server could not be reached for ten attempts in a row, or for twice as long as at the last event of this kind.
    /// The client continues to reconnect: show it to the user until the next [`Open`](Self::Open).
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
