use core::error::Error;
use core::fmt;

use tokio_tungstenite::tungstenite::Message;

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendErrorKind {
    /// There is no connection, and nothing waits for one: [`Outbox::fail_fast`](super::Outbox::fail_fast).
    NotConnected,
    /// The outbox is full.
    Full,
    /// It is longer than the outbox takes.
    TooLong,
    /// It made room for a newer one.
    Dropped,
    /// It has waited too long.
    Expired,
    /// The connection was lost while it was being written. Whether it arrived nobody knows; it is not sent again.
    Lost,
    /// The client has given up. Without the message in the error, it is still in the outbox, and goes out after
    /// [`reconnect_now`](crate::Handle::reconnect_now).
    GaveUp,
    /// The client was closed or dropped.
    Closed,
}

impl fmt::Display for SendErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotConnected => "there is no connection",
            Self::Full => "the outbox is full",
            Self::TooLong => "the message is longer than the outbox takes",
            Self::Dropped => "a newer message took its place",
            Self::Expired => "it has waited too long",
            Self::Lost => "the connection was lost while it was being written",
            Self::GaveUp => "the client has given up",
            Self::Closed => "the client is closed",
        })
    }
}

/// A message was not sent. Neither `Display` nor `Debug` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct SendError {
    kind: SendErrorKind,
    message: Option<Message>,
}

impl SendError {
    pub(in crate::client) const fn new(kind: SendErrorKind, message: Option<Message>) -> Self {
        Self { kind, message }
    }

    /// Why.
    #[must_use]
    pub const fn kind(&self) -> SendErrorKind {
        self.kind
    }

    /// The message, if the client no longer has it.
    #[must_use]
    pub fn into_message(self) -> Option<Message> {
        self.message
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the message was not sent: {}", self.kind)
    }
}

impl fmt::Debug for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Error for SendErrorKind {}

impl Error for SendError {}
