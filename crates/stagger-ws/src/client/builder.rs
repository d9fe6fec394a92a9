use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use http::Request;
use stagger::Retrier;
use stagger::profile::WEB_SOCKET;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::classify::Classifier;
use super::codes::{CloseAction, CloseCodes, rfc6455};
use super::connector::{Connector, TcpConnector};
use super::dial::{BoxError, ConnectAttempt, Dialer};
use super::failure::{Closed, ConnectionError};
use super::outbox::Outbox;
use super::resume::{Resume, SharedResume};

/// A listener for failed attempts and lost connections.
pub(super) type OnClosed = Box<dyn FnMut(&Closed) + Send + Sync>;

/// The default size of the inbox, and of the longest message, so that any message that is accepted fits into the inbox.
const INBOX_BYTES: usize = 16 << 20;

/// The settings of a client: a URL or a request provider, and what differs from the defaults.
///
/// | setting | default |
/// |---|---|
/// | retrier | [`WEB_SOCKET`]: spread 10 s, then equal jitter 15 to 30 s, without a limit, healthy after 10 s |
/// | connect timeout, close timeout | 10 s, 5 s |
/// | keepalive | a ping after 20 s without a frame; the connection is lost 20 s after the ping |
/// | close codes | [`codes::rfc6455`](rfc6455) |
/// | fresh credentials after 401 or 403 | once |
/// | redirects | not followed |
/// | outbox | 64 messages, then `send` waits |
/// | inbox | 64 events or 16 MiB, then nothing is read from the connection |
/// | longest message | 16 MiB, as long as the inbox |
/// | buffers | 4 KiB for reading, 4 KiB for writing, plus the current message |
pub struct ClientBuilder {
    pub(super) dialer: Dialer,
    pub(super) retrier: Retrier,
    pub(super) classifier: Classifier,
    pub(super) keepalive: Option<(Duration, Duration)>,
    pub(super) close_timeout: Duration,
    pub(super) on_closed: Option<OnClosed>,
    /// The number of servers that the request provider alternates between.
    pub(super) endpoints: usize,
    pub(super) outbox: Outbox,
    pub(super) inbox: usize,
    pub(super) inbox_bytes: usize,
    pub(super) resume: Option<SharedResume>,
}

impl ClientBuilder {
    pub(super) fn new() -> Self {
        let dialer = Dialer {
            provider: Arc::new(|_| {
                Box::pin(async { Err(ConnectionError::InvalidRequest("no URL is set; call url or request").into()) })
            }),
            connector: Arc::new(TcpConnector::new()),
            // Tungstenite's default of 128 KiB is allocated for every connection.
            socket: WebSocketConfig::default()
                .read_buffer_size(4 << 10)
                .write_buffer_size(4 << 10)
                .max_message_size(Some(INBOX_BYTES)),
            connect_timeout: Duration::from_secs(10),
            max_redirects: 0,
        };
        let keepalive = Duration::from_secs(20);
        Self {
            dialer,
            retrier: Retrier::new(WEB_SOCKET.policy()),
            classifier: Classifier::new(rfc6455()),
            keepalive: Some((keepalive, keepalive)),
            close_timeout: Duration::from_secs(5),
            on_closed: None,
            endpoints: 1,
            outbox: Outbox::default(),
            inbox: 64,
            inbox_bytes: INBOX_BYTES,
            resume: None,
        }
    }

    /// Connects to this URL, `ws://…` or `wss://…`, with the same request for every attempt.
    #[must_use]
    pub fn url(self, url: impl Into<String>) -> Self {
        let url: Arc<str> = Arc::from(url.into());
        self.request(move |_| {
            let request = Request::get(&*url).body(());
            async move { request.map_err(|_| ConnectionError::InvalidRequest("the URL cannot be parsed").into()) }
        })
    }

    /// Connects to one of several URLs, the preferred one first. Each failed attempt moves on to the next URL, after
    /// the wait of any other attempt; after the last one, it begins again. After the loss of a connection, the
    /// preferred URL is tried first, whichever was connected.
    ///
    /// An answer that is permanent for one server, such as 404 or a bad certificate, stops the client only if all
    /// servers in a row gave one. A close code that is fatal stops it as always. Without any URL, the client stops with
    /// [`ConnectionError::InvalidRequest`].
    #[must_use]
    pub fn urls(self, urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let urls: Arc<[String]> = urls.into_iter().map(Into::into).collect();
        let endpoints = urls.len().max(1);
        let mut builder = self.request(move |attempt| {
            let turn = usize::try_from(attempt.since_open.saturating_sub(1)).unwrap_or_default() % endpoints;
            let request = urls.get(turn).map(|url| Request::get(url.as_str()).body(()));
            async move {
                let request = request.ok_or(ConnectionError::InvalidRequest("there is no URL"))?;
                request.map_err(|_| ConnectionError::InvalidRequest("the URL cannot be parsed").into())
            }
        });
        builder.endpoints = endpoints;
        builder
    }

    /// Calls `provider` for the request of every attempt, so that credentials are always current. The request needs a
    /// URL and any extra headers; the headers of the WebSocket handshake are added.
    ///
    /// An error of the provider is transient and backed off like any other failure, except
    /// [`ConnectionError::InvalidRequest`], which stops the client. The connect timeout includes the provider.
    ///
    /// ```
    /// use http::Request;
    /// use stagger_ws::ReconnectLoop;
    /// # async fn token(_: Option<u16>) -> Result<String, std::io::Error> { Ok(String::new()) }
    ///
    /// let connections = ReconnectLoop::builder()
    ///     .request(|cx| async move {
    ///         let token = token(cx.auth_rejection()).await?;
    ///         Ok(Request::get("wss://feed.example/v1").header("authorization", format!("Bearer {token}")).body(())?)
    ///     })
    ///     .reconnect_loop();
    /// # let _ = connections;
    /// ```
    #[must_use]
    pub fn request<F, R>(mut self, provider: F) -> Self
    where
        F: Fn(ConnectAttempt) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Request<()>, BoxError>> + Send + 'static,
    {
        self.dialer.provider = Arc::new(move |attempt| Box::pin(provider(attempt)));
        self.endpoints = 1;
        self
    }

    /// Sets when the client retries and whether it gives up: a policy, or a [`Retrier`] with guards, rules,
    /// listeners and operator controls. Default: the policy [`WEB_SOCKET`] alone.
    ///
    /// - The spread should be at least the number of clients divided by the connections that the server accepts per
    ///   second. `stable_after` of the policy is the uptime after which a connection counts as healthy and the attempt
    ///   count restarts.
    /// - The guards are asked before every attempt to connect. While one of them says so, the client waits; if one
    ///   rejects the attempt, such as an open breaker, it gives up, as at any other limit. After a failure or a loss,
    ///   each must also grant a retry.
    /// - Rules for [`ConnectionError`], or for the [`io::Error`](std::io::Error) in it, come before the meaning of
    ///   close codes and rejected upgrades.
    /// - Listeners receive an event for every attempt, for every lost connection, and for giving up.
    /// - The name is the label `target` in metrics and logs. Use few distinct names: each one is a time series. Without
    ///   a name, it is `websocket`.
    /// - The retrier's timeout does not apply; see [`connect_timeout`](Self::connect_timeout).
    #[must_use]
    pub fn retrier(mut self, retrier: impl Into<Retrier>) -> Self {
        self.retrier = retrier.into();
        self
    }

    /// Sets the maximum duration of an attempt: request provider, name resolution, TCP, TLS and the handshake together.
    /// Default 10 s.
    #[must_use]
    pub const fn connect_timeout(mut self, longest: Duration) -> Self {
        self.dialer.connect_timeout = longest;
        self
    }

    /// Sets the maximum duration of the closing handshake. Default 5 s.
    #[must_use]
    pub const fn close_timeout(mut self, longest: Duration) -> Self {
        self.close_timeout = longest;
        self
    }

    /// Sends a ping after `interval` without a frame, and treats the connection as lost if no frame of any kind arrives
    /// within `timeout` after that. Default 20 s and 20 s; the minimum of both is 1 ms.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration, timeout: Duration) -> Self {
        let shortest = Duration::from_millis(1);
        self.keepalive = Some((interval.max(shortest), timeout.max(shortest)));
        self
    }

    /// Disables pings. A peer that vanishes silently is then detected only by sending, or never.
    #[must_use]
    pub const fn no_keepalive(mut self) -> Self {
        self.keepalive = None;
        self
    }

    /// Sets the meaning of close codes. Default [`codes::rfc6455`](rfc6455).
    #[must_use]
    pub fn close_codes(mut self, codes: CloseCodes) -> Self {
        self.classifier.codes = codes;
        self
    }

    /// Sets the meaning of the close code 1000. Default [`CloseAction::End`].
    #[must_use]
    pub fn on_normal_close(mut self, then: CloseAction) -> Self {
        self.classifier.codes = self.classifier.codes.on(1000..=1000, then);
        self
    }

    /// Sets how many times in a row the provider is called again after its credentials were rejected, with 401, 403 or
    /// a close code that means [`CloseAction::Reauthenticate`]. Default 1. Use more for a proxy that rejects
    /// credentials while it starts. These attempts wait like all others.
    ///
    /// A connection that was open for the policy's `stable_after` has proved its credentials: if they are rejected
    /// then, they have expired, and the count restarts.
    #[must_use]
    pub const fn max_auth_retries(mut self, times: u32) -> Self {
        self.classifier.max_auth_retries = times;
        self
    }

    /// Follows up to `redirects` redirects per attempt, but never from `wss` to `ws`. Default 0.
    ///
    /// Credentials are not sent to another origin, which is another scheme, host or port. Of the request's headers, it
    /// gets only `Origin` and `User-Agent`, besides those of the WebSocket handshake. It gets no
    /// `Sec-WebSocket-Protocol`, in which browsers and Kubernetes send tokens; if your servers need one, connect to the
    /// other origin yourself.
    #[must_use]
    pub const fn max_redirects(mut self, redirects: u32) -> Self {
        self.dialer.max_redirects = redirects;
        self
    }

    /// Sets the connector, which replaces [`TcpConnector`].
    #[must_use]
    pub fn connector(mut self, connector: impl Connector) -> Self {
        self.dialer.connector = Arc::new(connector);
        self
    }

    /// Sets the buffers and limits of the protocol. The read buffer is allocated once per connection. By default,
    /// messages and frames above 16 MiB are not accepted; [`WebSocketConfig::default`] accepts messages of up to 64
    /// MiB.
    #[must_use]
    pub fn websocket_config(mut self, mut config: WebSocketConfig) -> Self {
        // Tungstenite panics unless the maximum exceeds the buffer size.
        config.max_write_buffer_size = config.max_write_buffer_size.max(config.write_buffer_size.saturating_add(1));
        config.write_buffer_size = config.write_buffer_size.min(config.max_write_buffer_size - 1);
        self.dialer.socket = config;
        self
    }

    /// Calls `listener` after every failed attempt and every lost connection, with the cause and the wait that follows.
    #[must_use]
    pub fn on_closed(mut self, listener: impl FnMut(&Closed) + Send + Sync + 'static) -> Self {
        self.on_closed = Some(Box::new(listener));
        self
    }

    /// Sets what happens to messages that cannot be sent yet. For [`connect`](Self::connect). Default
    /// [`Outbox::backpressure`] with 64 messages.
    #[must_use]
    pub const fn outbox(mut self, outbox: Outbox) -> Self {
        self.outbox = outbox;
        self
    }

    /// Sets how many unread events are buffered before nothing more is read from the connection. For
    /// [`connect`](Self::connect). Default 64.
    #[must_use]
    pub const fn inbox(mut self, events: usize) -> Self {
        self.inbox = events;
        self
    }

    /// Sets how many bytes of unread messages are buffered before nothing more is read from the connection. The message
    /// that exceeds the limit is still buffered, so that a message of any length can be read. So a client whose program
    /// does not read holds less than this limit and the longest message together, by default 32 MiB; see
    /// [`websocket_config`](Self::websocket_config) for the longest message. It is also the most that a server may send
    /// before it has answered a [`Resume`]. For [`connect`](Self::connect). Default 16 MiB, which is also the default
    /// of the longest message.
    #[must_use]
    pub const fn inbox_bytes(mut self, bytes: usize) -> Self {
        // At a limit of zero, nothing would ever be read.
        self.inbox_bytes = if bytes == 0 { 1 } else { bytes };
        self
    }

    /// Resumes where the last connection ended, for protocols that support it. For [`connect`](Self::connect) and
    /// [`acked`](Self::acked).
    #[must_use]
    pub fn resume(mut self, resume: impl Resume) -> Self {
        self.resume = Some(Arc::new(Mutex::new(resume)));
        self
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("retrier", &self.retrier).finish_non_exhaustive()
    }
}
