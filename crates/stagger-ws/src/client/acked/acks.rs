use core::fmt;
use core::time::Duration;

use tokio_tungstenite::tungstenite::Message;

use crate::client::builder::MAX_DURATION;

/// What a message of the server's acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack<K> {
    /// The message with this id, and no other.
    One(K),
    /// Every message up to the one with this id. Ids have to ascend in the order in which they are sent.
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

/// How messages and their acknowledgements are told, and how many may be underway: what [`ClientBuilder::acked`] is given.
///
/// | | by default |
/// |---|---|
/// | messages that are not acknowledged | 64, and then `send` waits |
/// | their bytes | without bound |
/// | a peer that acknowledges nothing | is waited for; the keepalive finds one that is gone |
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

/// Whether the stream shows acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum AckDelivery {
    /// Acknowledgements are delivered to the stream like any other message.
    PassThrough,
    /// Acknowledgements are processed and not delivered.
    Consume,
}

impl<K: Ord + Send + 'static> Acks<K> {
    /// `id` says which message this is that goes out: no two that wait to be acknowledged may have the same. `ack` says
    /// what a message that comes in acknowledges, if it does.
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

    /// So many messages are not acknowledged, at least one; whoever sends a further one waits. 64 by default.
    #[must_use]
    pub fn window(mut self, messages: usize) -> Self {
        self.max_messages = messages.max(1);
        self
    }

    /// Nor more than so many bytes of payload. A message that is longer than that is refused. No limit by default.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Takes the connection for lost when a message that was sent over it has not been acknowledged for so long, though
    /// all that came has been read. It should be longer than the server's slowest answer. Never less than a
    /// millisecond. None by default: TCP does not lose what it was given while the connection is up.
    #[must_use]
    pub fn ack_timeout(mut self, longest: Duration) -> Self {
        self.timeout = Some(longest.clamp(Duration::from_millis(1), MAX_DURATION));
        self
    }

    /// Shows messages that acknowledge in the stream too, for protocols that have them say more than that. By default
    /// they are not shown, and whoever only sends does not have to read.
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
