use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use http::Request;
use stagger::profile::WEB_SOCKET;
use stagger::{Policy, Seed};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::classify::Classifier;
use super::connector::{Connector, TcpConnector};
use super::dialer::Dialer;
use super::reconnect_loop::{OnClosed, ReconnectLoop};
use super::request::{BoxError, ConnectAttempt};
use super::resume::SharedResume;
use super::{AckedClient, Acks, Client, Closed, ConnectionError, Outbox, Resume};
use crate::codes::{CloseAction, CloseCodes, rfc6455};

/// Longer than anybody waits: thirty years. What is longer is cut off, so that no sum of times runs over.
pub(super) const MAX_DURATION: Duration = Duration::from_secs(86_400 * 365 * 30);

/// How a client connects: an address or a provider of requests, and what differs from the defaults.
///
/// | | by default |
/// |---|---|
/// | policy | [`WEB_SOCKET`]: spread 10 s, then full jitter 500 ms to 30 s, 10 attempts, healthy after 10 s |
/// | connect timeout, close timeout | 10 s, 5 s |
/// | keepalive | a ping after 20 s of silence, dead 20 s after it |
/// | close codes | [`codes::rfc6455`](rfc6455) |
/// | fresh credentials after 401 or 403 | once |
/// | redirections | none is followed |
/// | outbox, inbox | 64 messages, and then `send` waits; 64 events, and then nothing is read |
/// | buffers | 4 KiB for reading, 4 KiB for writing, and the message at hand |
pub struct ClientBuilder {
    pub(super) dialer: Dialer,
    pub(super) policy: Policy,
    pub(super) seed: Seed,
    pub(super) classifier: Classifier,
    pub(super) target: Arc<str>,
    pub(super) keepalive: Option<(Duration, Duration)>,
    pub(super) close_timeout: Duration,
    pub(super) on_closed: Option<OnClosed>,
    pub(super) outbox: Outbox,
    pub(super) inbox: usize,
    pub(super) resume: Option<SharedResume>,
}

impl ClientBuilder {
    pub(super) fn new() -> Self {
        let dialer = Dialer {
            provider: Arc::new(|_| {
                Box::pin(async { Err(ConnectionError::InvalidRequest("no address was given").into()) })
            }),
            connector: Arc::new(TcpConnector::new()),
            // Tungstenite's own 128 KiB are allocated for every connection.
            socket: WebSocketConfig::default().read_buffer_size(4 << 10).write_buffer_size(4 << 10),
            connect_timeout: Duration::from_secs(10),
            max_redirects: 0,
        };
        let keepalive = Duration::from_secs(20);
        Self {
            dialer,
            policy: WEB_SOCKET.policy(),
            seed: stagger::seed(),
            classifier: Classifier::new(rfc6455()),
            target: Arc::from("websocket"),
            keepalive: Some((keepalive, keepalive)),
            close_timeout: Duration::from_secs(5),
            on_closed: None,
            outbox: Outbox::default(),
            inbox: 64,
            resume: None,
        }
    }

    /// Connects to this address, `ws://…` or `wss://…`, with the same request every time.
    #[must_use]
    pub fn url(self, url: impl Into<String>) -> Self {
        let url: Arc<str> = Arc::from(url.into());
        self.request(move |_| {
            let request = Request::get(&*url).body(());
            async move { request.map_err(|_| ConnectionError::InvalidRequest("the address cannot be read").into()) }
        })
    }

    /// Asks for the request of every attempt, so that its token is never an old one. It needs an address and what headers
    /// are wanted; what the protocol asks for is filled in.
    ///
    /// An error is taken for something that passes, and backed off like any other failure; a [`ConnectionError::InvalidRequest`] is not,
    /// and stops the client. The connect timeout is the provider's too.
    ///
    /// ```
    /// use http::Request;
    /// use stagger_ws::ReconnectLoop;
    /// # async fn token(_: Option<u16>) -> Result<String, std::io::Error> { Ok(String::new()) }
    ///
    /// let links = ReconnectLoop::builder()
    ///     .request(|cx| async move {
    ///         let token = token(cx.auth_rejection()).await?;
    ///         Ok(Request::get("wss://feed.example/v1").header("authorization", format!("Bearer {token}")).body(())?)
    ///     })
    ///     .reconnect_loop();
    /// # let _ = links;
    /// ```
    #[must_use]
    pub fn request<F, R>(mut self, provider: F) -> Self
    where
        F: Fn(ConnectAttempt) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Request<()>, BoxError>> + Send + 'static,
    {
        self.dialer.provider = Arc::new(move |attempt| Box::pin(provider(attempt)));
        self
    }

    /// When it tries again, and when it gives up. [`WEB_SOCKET`] by default. The spread should be at least the
    /// number of clients over what the server accepts in a second. How long a connection must have lived for the count to
    /// start again is a setting of the policy, too: `stable_after`.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Draws every wait from this seed, so that they can be repeated.
    #[must_use]
    pub const fn seed(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self
    }

    /// Its name in metrics and logs: one of few, for every name is a series. `websocket` by default.
    #[must_use]
    pub fn named(mut self, target: impl Into<Arc<str>>) -> Self {
        self.target = target.into();
        self
    }

    /// The longest that an attempt takes: the provider, the name, TCP, TLS and the handshake together. 10 s by default.
    #[must_use]
    pub fn connect_timeout(mut self, longest: Duration) -> Self {
        self.dialer.connect_timeout = longest.min(MAX_DURATION);
        self
    }

    /// The longest that the closing handshake takes. 5 s by default.
    #[must_use]
    pub fn close_timeout(mut self, longest: Duration) -> Self {
        self.close_timeout = longest.min(MAX_DURATION);
        self
    }

    /// Sends a ping when nothing has come for `every`, and takes the peer for dead when nothing has come `dead_after` that
    /// either. Any frame counts. 20 s and 20 s by default. Neither is less than a millisecond.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration, timeout: Duration) -> Self {
        let clamped = |length: Duration| length.clamp(Duration::from_millis(1), MAX_DURATION);
        self.keepalive = Some((clamped(interval), clamped(timeout)));
        self
    }

    /// Sends no pings. A peer that vanishes without a word is then found when something is sent to it, or never.
    #[must_use]
    pub const fn no_keepalive(mut self) -> Self {
        self.keepalive = None;
        self
    }

    /// What close codes mean. [`codes::rfc6455`](rfc6455) by default.
    #[must_use]
    pub fn close_codes(mut self, codes: CloseCodes) -> Self {
        self.classifier.codes = codes;
        self
    }

    /// What the close code 1000 means; [`CloseAction::End`] by default.
    #[must_use]
    pub fn on_normal_close(mut self, then: CloseAction) -> Self {
        self.classifier.codes = self.classifier.codes.on(1000..=1000, then);
        self
    }

    /// How often in a row the provider is asked again after its credentials were refused, with 401 or 403: more than once
    /// for a proxy that answers so while it starts. 1 by default. They wait their turn like every other attempt.
    #[must_use]
    pub const fn max_auth_retries(mut self, times: u32) -> Self {
        self.classifier.max_auth_retries = times;
        self
    }

    /// Follows so many redirections in one attempt; never from `wss` to `ws`, and credentials are not shown to another
    /// host. 0 by default.
    #[must_use]
    pub const fn max_redirects(mut self, redirects: u32) -> Self {
        self.dialer.max_redirects = redirects;
        self
    }

    /// Makes the stream of bytes in another way than over [`TcpConnector`].
    #[must_use]
    pub fn connector(mut self, connector: impl Connector) -> Self {
        self.dialer.connector = Arc::new(connector);
        self
    }

    /// Buffers and limits of the protocol. The reading buffer is allocated at once, for every connection; messages of more
    /// than 64 MiB and frames of more than 16 MiB are not accepted by default.
    #[must_use]
    pub fn websocket_config(mut self, mut config: WebSocketConfig) -> Self {
        // Tungstenite panics otherwise.
        config.max_write_buffer_size = config.max_write_buffer_size.max(config.write_buffer_size.saturating_add(1));
        config.write_buffer_size = config.write_buffer_size.min(config.max_write_buffer_size - 1);
        self.dialer.socket = config;
        self
    }

    /// Tells of every failed attempt and every loss, with the cause and the wait that follows.
    #[must_use]
    pub fn on_closed(mut self, listener: impl FnMut(&Closed) + Send + Sync + 'static) -> Self {
        self.on_closed = Some(Box::new(listener));
        self
    }

    /// What becomes of messages that cannot be sent yet. For [`connect`](Self::connect). [`Outbox::backpressure`] of 64 by
    /// default.
    #[must_use]
    pub const fn outbox(mut self, outbox: Outbox) -> Self {
        self.outbox = outbox;
        self
    }

    /// How many events wait to be read before nothing more is read from the connection. For [`connect`](Self::connect).
    /// 64 by default.
    #[must_use]
    pub const fn inbox(mut self, events: usize) -> Self {
        self.inbox = events;
        self
    }

    /// Goes on where the last connection left off, for protocols that can. For [`connect`](Self::connect) and
    /// [`acked`](Self::acked).
    #[must_use]
    pub fn resume(mut self, resume: impl Resume) -> Self {
        self.resume = Some(SharedResume::new(resume));
        self
    }

    /// The high level: a stream of events and a sink of messages, which a task of its own keeps connected. It begins to
    /// connect at once; [`Client::connected`](crate::Client::connected) waits for it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn connect(self) -> Client {
        Client::new(self, None)
    }

    /// The high level, delivering at least once: what is sent is kept until it is acknowledged. As [`connect`](Self::connect).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn acked<K: Ord + Send + 'static>(self, acks: Acks<K>) -> AckedClient<K> {
        AckedClient::new(self, acks)
    }

    /// The low level: one connection at a time.
    #[must_use]
    pub fn reconnect_loop(self) -> ReconnectLoop {
        ReconnectLoop::new(self)
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("target", &self.target)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
