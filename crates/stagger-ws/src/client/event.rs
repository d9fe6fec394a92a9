use core::time::Duration;

use http::Response;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::{ConnectionError, Fatal};

/// What a client has to tell, in the order in which it happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// There is a connection.
    Open(Opened),
    /// A text or a binary came.
    Message(Message),
    /// An attempt failed, or the connection is lost.
    ///
    /// While nobody reads, only the latest of a row of these is kept.
    Closed(Closed),
    /// Messages were dropped unsent: they made room for others, waited too long, or were lost with the connection.
    Dropped {
        /// How many, since this was told last.
        messages: u64,
    },
}

/// A connection was opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The number of the attempt that opened it, from 1; it starts again after a connection that was healthy.
    pub attempt: u32,
    /// The server's answer to the request for the upgrade.
    pub response: Response<()>,
    /// How long there was no connection before it; `None` for the first.
    pub downtime: Option<Duration>,
    /// Whether the server goes on where the last connection left off; only a [`Resume`](crate::Resume) can tell.
    pub resumed: bool,
    /// How many messages are sent again that were sent before and are not acknowledged; of an [`AckedClient`](crate::AckedClient) alone.
    pub resent: usize,
}

/// An attempt to connect has failed, or a connection is lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Closed {
    /// Why.
    pub cause: ConnectionError,
    /// How long it is until the next attempt; `None` if there is none.
    pub retry_in: Option<Duration>,
    /// The number of the attempt that failed, or that had opened the connection.
    pub attempt: u32,
}

/// Where a client stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConnectionState {
    /// An attempt is being made.
    Connecting,
    /// There is a connection.
    Open,
    /// The next attempt waits for its time.
    Waiting {
        /// When it is made.
        until: Instant,
    },
    /// No further attempt is made, unless [`Handle::reconnect_now`](crate::Handle::reconnect_now) asks for one: the client
    /// gave up. Without an error: the server ended it as it should, or the client was closed, which is for good.
    Closed(Option<Fatal>),
}
