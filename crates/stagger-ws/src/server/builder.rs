use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use http::{HeaderMap, Uri};
use stagger::admission::AdmissionControl;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::keepalive::Keepalive;
use super::rejection::{RejectBy, RejectionRule};

/// The settings of [`Sockets`](super::Sockets).
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct SocketsBuilder {
    pub(super) admission: Arc<dyn AdmissionControl>,
    pub(super) name: Arc<str>,
    pub(super) max_connections: usize,
    pub(super) retry_after_when_full: Duration,
    pub(super) keepalive: Option<Keepalive>,
    pub(super) close_timeout: Duration,
    pub(super) reject_by: RejectionRule,
    pub(super) max_closing: usize,
    pub(super) max_closing_per_peer: Option<usize>,
    pub(super) subprotocols: Arc<[Arc<str>]>,
    pub(super) rejection_timeout: Duration,
    pub(super) handshake_timeout: Duration,
    pub(super) first_byte_timeout: Duration,
    pub(super) max_handshakes: usize,
    pub(super) max_handshakes_per_peer: Option<usize>,
    pub(super) websocket_config: WebSocketConfig,
}

/// A problem with the settings of [`Sockets`](super::Sockets).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsError {
    /// The keepalive has a zero interval or timeout.
    Keepalive,
    /// The maximum number of handshakes is zero.
    MaxHandshakes,
    /// The maximum number of handshakes per peer is zero.
    MaxHandshakesPerPeer,
    /// The time for the first byte is zero.
    FirstByteTimeout,
    /// The maximum number of rejected clients of a peer that are being closed is zero.
    MaxClosingPerPeer,
    /// A subprotocol is not a token.
    Subprotocol {
        /// Its place in the list, from 0.
        index: usize,
    },
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self {
            Self::Keepalive => "the keepalive's interval or timeout is 0; use more than 0, or None to disable it",
            Self::MaxHandshakes => "max_handshakes is 0, which rejects every connection; use 1 or more",
            Self::MaxHandshakesPerPeer => {
                "max_handshakes_per_peer is 0, which rejects every connection; use 1 or more, or None for no limit"
            }
            Self::FirstByteTimeout => "first_byte_timeout is 0, which no client can meet; use more than 0",
            Self::MaxClosingPerPeer => {
                "max_closing_per_peer is 0, which closes no client; use 1 or more, or max_closing(0) to reject by a \
                 response"
            }
            Self::Subprotocol { index } => {
                return write!(f, "subprotocol {index} is not a token; use letters, digits and any of !#$%&'*+-.^_`|~");
            }
        };
        f.write_str(sentence)
    }
}

impl core::error::Error for SettingsError {}

impl SocketsBuilder {
    pub(super) fn new(admission: Arc<dyn AdmissionControl>) -> Self {
        Self {
            admission,
            name: "".into(),
            max_connections: usize::MAX,
            retry_after_when_full: Duration::from_secs(10),
            keepalive: Some(Keepalive::default()),
            close_timeout: Duration::from_secs(5),
            reject_by: RejectionRule::new(|_, _| RejectBy::Response),
            max_closing: 256,
            max_closing_per_peer: None,
            subprotocols: Arc::default(),
            rejection_timeout: Duration::from_secs(2),
            handshake_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(1),
            max_handshakes: 1024,
            max_handshakes_per_peer: None,
            websocket_config: WebSocketConfig::default(),
        }
    }

    /// Sets the server's name in metrics and log events, the label `target`. Default: empty.
    pub fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Limits the number of open connections. No limit by default.
    pub fn max_connections(self, max_connections: usize) -> Self {
        Self { max_connections, ..self }
    }

    /// Sets the `Retry-After` for clients that are rejected at the connection limit. It is not a reservation, since
    /// nothing is known about when a connection will end; clients add a spread to it. Default 10 s.
    pub fn retry_after_when_full(self, retry_after_when_full: Duration) -> Self {
        Self { retry_after_when_full, ..self }
    }

    /// Sets how dead peers are detected; `None` disables it. Default [`Keepalive::default`].
    pub fn keepalive(self, keepalive: impl Into<Option<Keepalive>>) -> Self {
        Self { keepalive: keepalive.into(), ..self }
    }

    /// Sets how long a client may take to reply to the close of a drain before its connection is dropped. Default 5 s.
    pub fn close_timeout(self, close_timeout: Duration) -> Self {
        Self { close_timeout, ..self }
    }

    /// Chooses how a client is told that its upgrade is rejected, by the URI and the headers of its request. Default:
    /// [`RejectBy::Response`] for all clients. [`RejectBy::browser`] closes the WebSockets of browsers, which cannot
    /// read a response, and [`RejectBy::subprotocol`] those of clients that offer one. The choice changes neither which
    /// clients are rejected nor how they are counted.
    ///
    /// ```
    /// use stagger::admission::{Admission, random_secret};
    /// use stagger_ws::server::{RejectBy, Sockets};
    ///
    /// let admission = Admission::per_second(500).build(random_secret())?;
    /// let sockets = Sockets::builder(admission).reject_by(RejectBy::browser).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reject_by(self, choose: impl Fn(&Uri, &HeaderMap) -> RejectBy + Send + Sync + 'static) -> Self {
        Self { reject_by: RejectionRule::new(choose), ..self }
    }

    /// Limits the number of rejected clients whose WebSocket is being closed at a time. Further ones are rejected by a
    /// response, so peers that never close keep out no other client. 0 rejects all clients by a response. Default 256.
    pub fn max_closing(self, max_closing: usize) -> Self {
        Self { max_closing, ..self }
    }

    /// Limits the number of rejected clients of one peer whose WebSocket is being closed at a time (minimum 1), so that
    /// one cannot take all of [`max_closing`](Self::max_closing). Further ones are rejected by a response. A peer is an
    /// IPv4 address or the /64 network of an IPv6 address; it is known in [`Sockets::serve`](super::Sockets::serve),
    /// and in axum if the router is served with connect info. No limit by default, since a proxy is one peer for many
    /// clients.
    pub fn max_closing_per_peer(self, max_closing_per_peer: impl Into<Option<usize>>) -> Self {
        Self { max_closing_per_peer: max_closing_per_peer.into(), ..self }
    }

    /// Sets the subprotocols that the server speaks, the preferred ones first. The first one that a client offers is
    /// selected, and [`Accepted::subprotocol`](super::Accepted::subprotocol) is its name. Default: none.
    ///
    /// A browser fails a connection if its page offers subprotocols and the server selects none, with close code 1006.
    /// So a server for pages that offer some needs this list, and clients that offer others cannot connect. For
    /// [`Sockets::accept`](super::Sockets::accept) and [`Sockets::serve`](super::Sockets::serve), and with axum for
    #[cfg_attr(
        feature = "axum",
        doc = "[`AdmittedUpgrade`](super::AdmittedUpgrade), unless the application selects one itself."
    )]
    #[cfg_attr(not(feature = "axum"), doc = "`AdmittedUpgrade`, unless the application selects one itself.")]
    ///
    /// ```
    /// use stagger::admission::{Admission, random_secret};
    /// use stagger_ws::server::Sockets;
    ///
    /// let admission = Admission::per_second(500).build(random_secret())?;
    /// let sockets = Sockets::builder(admission).subprotocols(["chat.v2", "chat.v1"]).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn subprotocols(self, names: impl IntoIterator<Item: Into<Arc<str>>>) -> Self {
        Self { subprotocols: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets how long a rejected client may take to read its close frame and reply to it, before its connection is
    /// dropped. It may send 64 KiB in this time, which are read and ignored. Default 2 s.
    pub fn rejection_timeout(self, rejection_timeout: Duration) -> Self {
        Self { rejection_timeout, ..self }
    }

    /// Limits the handshake, from the call of [`Sockets::accept`](super::Sockets::accept), or from the connection in
    /// [`Sockets::serve`](super::Sockets::serve), until the response is sent. Default 10 s.
    pub fn handshake_timeout(self, handshake_timeout: Duration) -> Self {
        Self { handshake_timeout, ..self }
    }

    /// Sets how long a connection of [`Sockets::serve`](super::Sockets::serve) may be silent before it is closed. A
    /// client sends its request as soon as it is connected, so this is time for a lost packet or two. Default 1 s.
    pub fn first_byte_timeout(self, first_byte_timeout: Duration) -> Self {
        Self { first_byte_timeout, ..self }
    }

    /// Limits the number of concurrent handshakes in [`Sockets::serve`](super::Sockets::serve) (minimum 1). Default
    /// 1,024.
    ///
    /// At the limit, a new connection gets the place of the oldest one that has sent nothing, or else of the oldest one
    /// that has not sent its whole request within the [`first_byte_timeout`](Self::first_byte_timeout). So silent
    /// connections do not keep clients out. If there are neither, further connections wait in the kernel's backlog,
    /// where waiting costs nothing; see [`listen`](super::listen()).
    pub fn max_handshakes(self, max_handshakes: usize) -> Self {
        Self { max_handshakes, ..self }
    }

    /// Limits the number of concurrent handshakes per peer in [`Sockets::serve`](super::Sockets::serve) (minimum 1);
    /// further connections of the peer are closed. A peer is an IPv4 address or the /64 network of an IPv6 address. No
    /// limit by default, since a proxy or a shared address is one peer for many clients.
    pub fn max_handshakes_per_peer(self, max_handshakes_per_peer: impl Into<Option<usize>>) -> Self {
        Self { max_handshakes_per_peer: max_handshakes_per_peer.into(), ..self }
    }

    /// Sets the size limits and buffers of the connections that [`Sockets::accept`](super::Sockets::accept) creates. By
    /// default, tungstenite allocates a read buffer of 128 KiB per connection.
    pub fn websocket_config(self, websocket_config: WebSocketConfig) -> Self {
        Self { websocket_config, ..self }
    }
}
