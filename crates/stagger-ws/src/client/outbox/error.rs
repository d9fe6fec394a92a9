use core::error::Error;
use core::fmt;

use tokio_tungstenite::tungstenite::Message;

/// The reason why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendErrorKind {
    /// There is no connection, and the outbox does not wait for one: [`Outbox::fail_fast`](crate::Outbox::fail_fast).
    NotConnected,
    /// The outbox is full.
    Full,
    /// The message exceeds the size limit of the outbox, or the write buffer of the connection.
    TooLong,
    /// A newer message replaced it.
    Dropped,
    /// The message waited longer than the outbox's time to live.
    Expired,
    /// The connection was lost while the message was being written. It may or may not have arrived; it is not sent
    /// again.
    Lost,
    /// The client has given up. If the error does not contain the message, it is still in the outbox and is sent after
    /// [`reconnect_now`](crate::Handle::reconnect_now).
    GaveUp,
    /// The client was closed or dropped.
    Closed,
}

impl fmt::Display for SendErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotConnected => "not connected",
            Self::Full => "the outbox is full",
            Self::TooLong => "the message exceeds the size limit of the outbox or of the write buffer",
            Self::Dropped => "a newer message replaced it",
            Self::Expired => "it waited longer than its time to live",
            Self::Lost => "the connection was lost while it was being written",
            Self::GaveUp => "the client has given up",
            Self::Closed => "the client is closed",
        })
    }
}

/// The error of a message that was not sent. Neither `Display` nor `Debug` shows the message.
#[derive(Clone, PartialEq, Eq)]
pub struct SendError {
    kind: SendErrorKind,
    message: Option<Message>,
}

impl SendError {
    pub(in crate::client) const fn new(kind: SendErrorKind, message: Option<Message>) -> Self {
        Self { kind, message }
    }

    /// Returns the reason.
    #[must_use]
    pub const fn kind(&self) -> SendErrorKind {
        self.kind
    }

    /// Returns the message, if the client no longer has it.
    #[must_use]
    pub fn into_message(self) -> Option<Message> {
        self.message
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message not sent: {}", self.kind)
    }
}

impl fmt::Debug for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Error for SendErrorKind {}

impl Error for SendError {}
