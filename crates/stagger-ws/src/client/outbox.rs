//! What happens to messages that cannot be sent yet, and why a message was not sent.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use tokio_tungstenite::tungstenite::Message;

/// What happens to messages that cannot be sent yet. Every outbox is bounded.
///
/// | outbox | while it is full | while there is no connection |
/// |---|---|---|
/// | [`fail_fast`](Self::fail_fast) | `send` waits | `send` fails immediately, and waiting messages fail |
/// | [`backpressure`](Self::backpressure), the default with 64 messages | `send` waits | messages wait |
/// | [`drop_oldest`](Self::drop_oldest) | a new message replaces the oldest | messages wait |
/// | [`drop_newest`](Self::drop_newest) | `send` fails immediately | messages wait |
///
/// Dropped messages are counted and reported with [`Event::Dropped`](crate::Event::Dropped).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outbox {
    pub(super) overflow: OverflowPolicy,
    pub(super) max_messages: usize,
    pub(super) max_bytes: usize,
    pub(super) ttl: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverflowPolicy {
    FailFast,
    Backpressure,
    DropOldest,
    DropNewest,
}

impl Outbox {
    /// Creates an outbox in which no message waits for a connection. While connected, up to 64 messages are buffered.
    #[must_use]
    pub const fn fail_fast() -> Self {
        Self::new(OverflowPolicy::FailFast, 64)
    }

    /// Buffers up to `messages` messages (minimum 1). Further sends wait, which applies backpressure.
    #[must_use]
    pub const fn backpressure(messages: usize) -> Self {
        Self::new(OverflowPolicy::Backpressure, messages)
    }

    /// Buffers up to `messages` messages (minimum 1). If the outbox is full, a new message replaces the oldest.
    #[must_use]
    pub const fn drop_oldest(messages: usize) -> Self {
        Self::new(OverflowPolicy::DropOldest, messages)
    }

    /// Buffers up to `messages` messages (minimum 1). If the outbox is full, new messages are rejected.
    #[must_use]
    pub const fn drop_newest(messages: usize) -> Self {
        Self::new(OverflowPolicy::DropNewest, messages)
    }

    /// Limits the total payload to `bytes`. A longer message is rejected. No limit by default.
    #[must_use]
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Drops messages that have waited for `longest`. No limit by default.
    #[must_use]
    pub const fn ttl(mut self, longest: Duration) -> Self {
        self.ttl = Some(longest);
        self
    }

    const fn new(overflow: OverflowPolicy, messages: usize) -> Self {
        let messages = if messages == 0 { 1 } else { messages };
        Self { overflow, max_messages: messages, max_bytes: usize::MAX, ttl: None }
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self::backpressure(64)
    }
}

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
    pub(super) const fn new(kind: SendErrorKind, message: Option<Message>) -> Self {
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
