use core::time::Duration;

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
