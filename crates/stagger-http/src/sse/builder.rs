use core::fmt;
use core::future::Future;
use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::sync::Arc;

use http::{Request, Response};
use http_body::Body;
use stagger::profile::WEB_SOCKET;
use stagger::{PolicyError, Retrier};
use tower_service::Service;

use super::client::Client;
use super::connect::{Connect, ConnectAttempt, Connector, Provider, Repeat};
use super::event::Closed;
use super::event::{BoxError, ConnectionError};
use super::parser::{MAX_EVENT_BYTES, is_valid_id};
use super::transport::Transport;

/// A listener for failed attempts and ended streams.
pub(super) type OnClosed = Box<dyn FnMut(&Closed) + Send>;

/// The settings of a client: an HTTP client, a URL or a request provider, and what differs from the defaults.
///
/// | setting | default |
/// |---|---|
/// | retrier | [`WEB_SOCKET`]: spread 10 s, then equal jitter 15 to 30 s, without a limit, healthy after 10 s |
/// | connect timeout | 30 s until the head of the response |
/// | idle timeout | 90 s without a line; comments count |
/// | longest wait that `retry` may ask for | 5 min |
/// | longest event | 1 MiB |
/// | fresh credentials after 401 or 403 | once |
/// | requests that are not idempotent | sent once |
pub struct ClientBuilder<B> {
    transport: Transport<B>,
    provider: Provider<B>,
    connect_timeout: Duration,
    repeat: Repeat,
    retrier: Retrier,
    spread: Option<Duration>,
    stable_after: Option<Duration>,
    settings: ClientSettings,
}

/// The settings of a client beside its requests and its retrier.
pub(super) struct ClientSettings {
    pub(super) idle_timeout: Option<Duration>,
    pub(super) max_retry: Duration,
    pub(super) max_event_bytes: usize,
    pub(super) max_auth_retries: u32,
    pub(super) last_event_id: Arc<str>,
    pub(super) on_closed: Option<OnClosed>,
}

impl<B: Send + 'static> ClientBuilder<B> {
    pub(super) fn new(transport: Transport<B>) -> Self {
        Self {
            transport,
            provider: Arc::new(|_| {
                Box::pin(async { Err(ConnectionError::InvalidRequest("no URL is set; call url or request").into()) })
            }),
            connect_timeout: Duration::from_secs(30),
            repeat: Repeat::IfSafe,
            retrier: Retrier::new(WEB_SOCKET.policy()),
            spread: None,
            stable_after: None,
            settings: ClientSettings {
                idle_timeout: Some(Duration::from_secs(90)),
                max_retry: Duration::from_secs(300),
                max_event_bytes: MAX_EVENT_BYTES,
                max_auth_retries: 1,
                last_event_id: Arc::from(""),
                on_closed: None,
            },
        }
    }

    pub(super) fn from_service<S, R>(service: S) -> Self
    where
        S: Service<Request<B>, Response = Response<R>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        R: Body + Send + 'static,
        R::Error: Into<BoxError>,
    {
        Self::new(Transport::from_service(service))
    }

    /// Sets the URL that every attempt requests, with GET and without a body.
    #[must_use]
    pub fn url(self, url: impl Into<String>) -> Self
    where
        B: Default,
    {
        let url: Arc<str> = Arc::from(url.into());
        self.request(move |_| {
            let request = Request::get(&*url).body(B::default());
            async move { request.map_err(|_| ConnectionError::InvalidRequest("the URL cannot be parsed").into()) }
        })
    }

    /// Calls `provider` for the request of every attempt, so that credentials are always current. The client adds
    /// `Accept` and `Cache-Control`, unless the request has them, and `Last-Event-ID`.
    ///
    /// An error of the provider is transient and backed off like any other failure, except
    /// [`ConnectionError::InvalidRequest`], which stops the client. The connect timeout includes the provider.
    ///
    /// A request that is not idempotent, such as a POST without an `Idempotency-Key`, is sent once: when its stream is
    /// lost, the client stops with [`ConnectionError::UnsafeToRetry`]. If your server can continue the stream with a
    /// GET, return one if [`last_event_id`](ConnectAttempt::last_event_id) is not empty.
    #[must_use]
    pub fn request<F, R>(mut self, provider: F) -> Self
    where
        F: Fn(ConnectAttempt) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Request<B>, BoxError>> + Send + 'static,
    {
        self.provider = Arc::new(move |attempt| Box::pin(provider(attempt)));
        self
    }

    /// Declares all requests idempotent, whatever their method. Default: by method or `Idempotency-Key`.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.repeat = Repeat::Always;
        self
    }

    /// Sets when the client retries and whether it gives up: a policy, or a [`Retrier`] with guards, rules,
    /// listeners and operator controls. Default: the policy [`WEB_SOCKET`] alone.
    ///
    /// - The spread should be at least the number of clients divided by the connections that the server accepts per
    ///   second. `stable_after` of the policy is the time after which a stream counts as healthy and the attempt count
    ///   restarts.
    /// - The guards are asked before every attempt to connect. While one of them says so, the client waits; if one
    ///   rejects the attempt, such as an open breaker, it gives up, as at any other limit. After a failure or a loss,
    ///   each must also grant a retry.
    /// - Rules for [`ConnectionError`], or for the HTTP client's error in it, come before the meaning of statuses.
    /// - Listeners receive an event for every attempt, for every ended stream, and for giving up.
    /// - The retrier's timeout does not apply; see [`connect_timeout`](Self::connect_timeout).
    #[must_use]
    pub fn retrier(mut self, retrier: impl Into<Retrier>) -> Self {
        self.retrier = retrier.into();
        self
    }

    /// Sets the spread of the policy: the upper bound of the random wait after every loss. Default: the policy's own.
    #[must_use]
    pub const fn spread(mut self, spread: Duration) -> Self {
        self.spread = Some(spread);
        self
    }

    /// Sets `stable_after` of the policy: how long a stream must be open to count as healthy. Default: the policy's
    /// own.
    #[must_use]
    pub const fn stable_after(mut self, stable_after: Duration) -> Self {
        self.stable_after = Some(stable_after);
        self
    }

    /// Sets the maximum duration of an attempt: request provider, connection, and the head of the response. Some
    /// servers send the head only with the first event. Default 30 s.
    #[must_use]
    pub const fn connect_timeout(mut self, longest: Duration) -> Self {
        self.connect_timeout = longest;
        self
    }

    /// Sets how long the server may be silent: if no line ends for this time, the stream counts as lost. Comments are
    /// lines, and the standard advises servers to send one every 15 s. Bytes without the end of a line do not count, so
    /// an event must arrive within this time. Default 90 s.
    #[must_use]
    pub const fn idle_timeout(mut self, longest: Duration) -> Self {
        self.settings.idle_timeout = Some(longest);
        self
    }

    /// Lets the server be silent forever, for servers that send no comments. A peer that vanishes without closing its
    /// connection is then never detected.
    #[must_use]
    pub const fn no_idle_timeout(mut self) -> Self {
        self.settings.idle_timeout = None;
        self
    }

    /// Sets the longest wait that the server may ask for with `retry`. A longer one is capped, and reported as
    /// [`Event::RetryCapped`](super::Event::RetryCapped); so is one above the policy's `max_hint`. Default 5 min.
    #[must_use]
    pub const fn max_retry(mut self, longest: Duration) -> Self {
        self.settings.max_retry = longest;
        self
    }

    /// Sets the maximum length of an event in bytes: its type and its data. A longer one stops the client, since the
    /// server would send it again. Default 1 MiB.
    #[must_use]
    pub const fn max_event_bytes(mut self, bytes: usize) -> Self {
        self.settings.max_event_bytes = bytes;
        self
    }

    /// Sets the id to continue after, sent with the first attempt. At most 4 KiB, without control characters; otherwise
    /// the client stops with [`ConnectionError::InvalidRequest`]. Default: none.
    #[must_use]
    pub fn last_event_id(mut self, id: impl Into<String>) -> Self {
        self.settings.last_event_id = Arc::from(id.into());
        self
    }

    /// Sets how many times in a row the provider is called again after its credentials were rejected, with 401 or 403.
    /// These attempts wait like all others. Default 1.
    #[must_use]
    pub const fn max_auth_retries(mut self, times: u32) -> Self {
        self.settings.max_auth_retries = times;
        self
    }

    /// Calls `listener` after every failed attempt and every ended stream, with the cause and the wait that follows.
    #[must_use]
    pub fn on_closed(mut self, listener: impl FnMut(&Closed) + Send + 'static) -> Self {
        self.settings.on_closed = Some(Box::new(listener));
        self
    }

    /// Creates the client. It connects when it is first polled.
    #[must_use]
    pub fn connect(self) -> Client {
        let Self { transport, provider, connect_timeout, repeat, retrier, spread, stable_after, settings } = self;
        let (retrier, invalid) = match with_overrides(&retrier, spread, stable_after) {
            Err(error) => (retrier, Some(ConnectionError::InvalidPolicy(error))),
            Ok(retrier) if is_valid_id(&settings.last_event_id) => (retrier, None),
            Ok(retrier) => {
                let why = "the initial id of the last event is too long or has control characters";
                (retrier, Some(ConnectionError::InvalidRequest(why)))
            }
        };
        let connector = Connector { provider, transport, connect_timeout, repeat, is_spent: AtomicBool::new(false) };
        let connect: Connect = connector.into_connect();
        Client::new(connect, retrier, settings, invalid)
    }
}

/// Returns the retrier with the settings of its policy that the builder overrides.
fn with_overrides(
    retrier: &Retrier,
    spread: Option<Duration>,
    stable_after: Option<Duration>,
) -> Result<Retrier, PolicyError> {
    retrier.with(|mut policy| {
        if let Some(spread) = spread {
            policy = policy.spread(spread);
        }
        match stable_after {
            Some(stable_after) => policy.stable_after(stable_after),
            None => policy,
        }
    })
}

impl<B> fmt::Debug for ClientBuilder<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("retrier", &self.retrier).finish_non_exhaustive()
    }
}
