use core::any::Any;
use core::fmt;
use core::future::Future;
use std::sync::Arc;

use http::{HeaderMap, request};
use stagger::Retrier;
use tower_layer::Layer;

use super::service::Retry;
use super::settings::{Header, Settings};
use crate::Sent;

/// Retries the requests of a service.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::Full;
/// use stagger::{Policy, Retrier, policy};
/// use stagger_http::tower::RetryLayer;
/// use tower::{ServiceBuilder, ServiceExt as _, service_fn};
///
/// const POLICY: Policy = policy!(exponential(ms(1), ms(10)).max_attempts(4));
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// # let calls = std::sync::atomic::AtomicU32::new(0);
/// # let calls = &calls;
/// # let server = service_fn(move |_: Request<_>| async move {
/// #     let status = if calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2 { 503 } else { 200 };
/// #     Ok::<_, std::io::Error>(Response::builder().status(status).body(Full::<Bytes>::default()).unwrap())
/// # });
/// let client = ServiceBuilder::new().layer(RetryLayer::new(Retrier::new(POLICY))).service(server);
/// let answer = client.oneshot(Request::get("/").body(Full::<Bytes>::default()).unwrap()).await.unwrap();
/// assert_eq!(answer.status(), 200);
/// # });
/// ```
#[derive(Clone)]
pub struct RetryLayer<T> {
    settings: Arc<Settings>,
    timer: T,
}

#[cfg(feature = "tokio")]
impl RetryLayer<stagger::Tokio> {
    /// As this retrier says: its policy, budget, breaker, rules and listeners. On tokio's timer.
    #[must_use]
    pub fn new(retrier: Retrier) -> Self {
        Self::on(stagger::Tokio, retrier)
    }
}

impl<T> RetryLayer<T> {
    /// The same on another timer.
    #[must_use]
    pub fn on(timer: T, retrier: Retrier) -> Self {
        let settings = Settings {
            retrier,
            replay: 64 * 1024,
            attempt_header: Header::Withheld,
            timeout_header: Header::Withheld,
            key: Header::Withheld,
            renew: None,
            told: None,
            sent: Vec::new(),
        };
        Self { settings: Arc::new(settings), timer }
    }

    /// How many bytes of a request's body are kept, to be sent again. Default 64 KiB. A longer one is sent once.
    #[must_use]
    pub fn replay_limit(self, bytes: usize) -> Self {
        self.change(|settings| settings.replay = bytes)
    }

    /// Sends the number of the attempt, from 1, in the header `x-retry-attempt`. Default: it does not. The service finds
    /// an [`Attempt`](stagger::Attempt) among the request's extensions in any case.
    #[must_use]
    pub fn attempt_header(self) -> Self {
        self.change(|settings| settings.attempt_header = Header::Sent)
    }

    /// Sends what is left of the time for an attempt, in whole milliseconds, in the header `stagger-timeout-ms`: the
    /// [`Deadline`](super::Deadline) of the request and the retrier's timeout, whichever is sooner. Default: it does not.
    /// A gRPC request carries it in `grpc-timeout` in any case.
    #[must_use]
    pub fn timeout_header(self) -> Self {
        self.change(|settings| settings.timeout_header = Header::Sent)
    }

    /// Gives every request that is not idempotent an `Idempotency-Key`, unless it has one: a UUID, made once and the same on
    /// every attempt. For servers that keep to it; others carry out each attempt. Default: it does not.
    #[must_use]
    pub fn idempotency_keys(self) -> Self {
        self.change(|settings| settings.key = Header::Sent)
    }

    /// For 401 and 403: how to get fresh credentials. What comes of it are the headers to be set, `None` if there are none to
    /// be had. The request is then made anew with them, at once, and once in a call.
    #[must_use]
    pub fn renew<F, Fut>(self, renew: F) -> Self
    where
        F: Fn(&request::Parts) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<HeaderMap>> + Send + 'static,
    {
        self.change(|settings| settings.renew = Some(Arc::new(move |parts| Box::pin(renew(parts)))))
    }

    /// Which requests may be repeated although neither their method nor a key says so: those for which this is true.
    #[must_use]
    pub fn repeat_when(self, may: impl Fn(&request::Parts) -> bool + Send + Sync + 'static) -> Self {
        self.change(|settings| settings.told = Some(Arc::new(may)))
    }

    /// How far a request has come that failed with an error of this type. Built in: I/O errors, bare or inside a
    /// `Box<dyn Error + Send + Sync>`, that say that no connection was made.
    #[must_use]
    pub fn sent<E: Any>(self, how_far: impl Fn(&E) -> Sent + Send + Sync + 'static) -> Self {
        self.change(|settings| settings.sent.push(Arc::new(move |error| error.downcast_ref().map(&how_far))))
    }

    fn change(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl<S, T: Clone> Layer<S> for RetryLayer<T> {
    type Service = Retry<S, T>;

    fn layer(&self, inner: S) -> Retry<S, T> {
        Retry { inner, settings: Arc::clone(&self.settings), timer: self.timer.clone() }
    }
}

impl<T> fmt::Debug for RetryLayer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer").field("settings", &self.settings).finish_non_exhaustive()
    }
}
