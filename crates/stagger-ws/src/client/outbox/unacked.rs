use core::fmt::Debug;
use core::task::{Context, Poll};
use core::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::queue::LinkState;

/// The messages that an [`AckedClient`](crate::AckedClient) keeps until they are acknowledged, as the connection task
/// sees them: independent of the type of their ids.
pub(in crate::client) trait UnackedMessages: Debug + Send + Sync {
    /// Sets whether messages can be sent. When the link comes up, all unacknowledged messages are written again.
    /// Returns how many of them had been written before.
    fn set_link(&self, link: LinkState) -> usize;

    /// Returns the next message to write. If there is none, the task is woken when there is.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Message>;

    /// Drops the message taken last, which no connection can ever write.
    fn drop_last(&self);

    /// Processes an incoming message. Returns whether the stream yields it.
    fn process_incoming(&self, message: &Message) -> AckDelivery;

    /// Returns the acknowledgement timeout.
    fn timeout(&self) -> Option<Duration>;

    /// Returns the deadline of the oldest outstanding acknowledgement, if there is one.
    fn due(&self) -> Option<Instant>;
}

/// Whether the stream yields acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum AckDelivery {
    /// Yields acknowledgements like any other message.
    PassThrough,
    /// Processes acknowledgements without yielding them.
    Consume,
}
