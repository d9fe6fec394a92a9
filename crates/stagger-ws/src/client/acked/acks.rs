use core::fmt;
use core::time::Duration;

use tokio_tungstenite::tungstenite::Message;

use crate::client::outbox::unacked::AckDelivery;

/// What a message from the server acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ack<K> {
    /// Only the message with this id.
    One(K),
    /// All messages up to and including the one with this id. Ids must ascend in send order.
    UpTo(K),
}

impl<K: Ord> Ack<K> {
    pub(super) fn covers(&self, id: &K) -> bool {
        match self {
            Self::One(one) => one == id,
            Self::UpTo(last) => last >= id,
        }
    }
}

/// How messages are identified and acknowledged, and how many may be unacknowledged: the configuration for
/// [`ClientBuilder::acked`].
///
/// | setting | default |
/// |---|---|
/// | unacknowledged messages | 64, then `send` waits |
/// | unacknowledged bytes | no limit |
/// | a server that never acknowledges | no timeout; the keepalive detects an unresponsive peer |
///
/// [`ClientBuilder::acked`]: crate::ClientBuilder::acked
pub struct Acks<K> {
    id: Box<IdOf<K>>,
    ack: Box<AckIn<K>>,
    pub(super) max_messages: usize,
    pub(super) max_bytes: usize,
    pub(super) timeout: Option<Duration>,
    pub(super) delivery: AckDelivery,
}

type IdOf<K> = dyn Fn(&Message) -> K + Send + Sync;
type AckIn<K> = dyn Fn(&Message) -> Option<Ack<K>> + Send + Sync;

impl<K: Ord + Send + 'static> Acks<K> {
    /// Creates a configuration with a window of 64 messages. `id` returns the id of an outgoing message; ids must be
    /// unique among unacknowledged messages. `ack` returns what an incoming message acknowledges, or `None` if it is
    /// not an acknowledgement.
    #[must_use]
    pub fn new(
        id: impl Fn(&Message) -> K + Send + Sync + 'static,
        ack: impl Fn(&Message) -> Option<Ack<K>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            id: Box::new(id),
            ack: Box::new(ack),
            max_messages: 64,
            max_bytes: usize::MAX,
            timeout: None,
            delivery: AckDelivery::Consume,
        }
    }

    /// Limits the number of unacknowledged messages (minimum 1). Further sends wait. Default 64.
    #[must_use]
    pub fn window(mut self, messages: usize) -> Self {
        self.max_messages = messages.max(1);
        self
    }

    /// Limits the total payload of unacknowledged messages to `bytes`. A longer message is rejected. No limit by
    /// default.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Treats the connection as lost if a message that was sent over it is not acknowledged for `longest`, and
    /// everything received has been read. Choose a time longer than the server's slowest response; the minimum is 1 ms.
    /// No timeout by default, since TCP does not lose data while the connection is up.
    #[must_use]
    pub fn ack_timeout(mut self, longest: Duration) -> Self {
        self.timeout = Some(longest.max(Duration::from_millis(1)));
        self
    }

    /// Yields acknowledgements in the stream, too, for protocols whose acknowledgements carry data. By default they are
    /// consumed, so a client that only sends does not have to read.
    #[must_use]
    pub fn pass_through(mut self) -> Self {
        self.delivery = AckDelivery::PassThrough;
        self
    }

    pub(super) fn id(&self, message: &Message) -> K {
        (self.id)(message)
    }

    pub(super) fn ack(&self, message: &Message) -> Option<Ack<K>> {
        (self.ack)(message)
    }
}

impl<K> fmt::Debug for Acks<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acks")
            .field("window", &self.max_messages)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}
