use core::time::Duration;

/// What becomes of messages that cannot be sent yet. It is always bounded.
///
/// | | while it is full | while there is no connection |
/// |---|---|---|
/// | [`fail_fast`](Self::fail_fast) | `send` waits | `send` fails at once, and what was waiting fails |
/// | [`backpressure`](Self::backpressure), of 64 by default | `send` waits | messages wait |
/// | [`drop_oldest`](Self::drop_oldest) | the oldest message makes room | messages wait |
/// | [`drop_newest`](Self::drop_newest) | `send` fails at once | messages wait |
///
/// Messages that were dropped are counted, and told with an [`Event::Dropped`](crate::Event::Dropped).
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
    /// Nothing waits for a connection.
    #[must_use]
    pub const fn fail_fast() -> Self {
        Self::new(OverflowPolicy::FailFast, 64)
    }

    /// So many messages wait, at least one; who wants to send more waits too.
    #[must_use]
    pub const fn backpressure(messages: usize) -> Self {
        Self::new(OverflowPolicy::Backpressure, messages)
    }

    /// So many messages wait, at least one; a new one takes the place of the oldest.
    #[must_use]
    pub const fn drop_oldest(messages: usize) -> Self {
        Self::new(OverflowPolicy::DropOldest, messages)
    }

    /// So many messages wait, at least one; a new one that finds no place is refused.
    #[must_use]
    pub const fn drop_newest(messages: usize) -> Self {
        Self::new(OverflowPolicy::DropNewest, messages)
    }

    /// Nor more than so many bytes of payload. A message that is longer than that is refused. No limit by default.
    #[must_use]
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// A message that has waited for so long is dropped. No limit by default.
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
