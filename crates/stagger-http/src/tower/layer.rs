use core::any::Any;
use core::fmt;
use std::sync::Arc;

use http::request;
use stagger::Retrier;
use tower_layer::Layer;

use super::service::Retry;
use super::settings::Settings;
use crate::{Sent, client};

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
impl RetryLayer<stagger::time::Tokio> {
    /// As this retrier says: its policy, budget, breaker, rules and listeners. On tokio's timer.
    #[must_use]
    pub fn new(retrier: Retrier) -> Self {
        Self::on(stagger::time::Tokio, retrier)
    }
}

impl<T> RetryLayer<T> {
    /// The same on another timer.
    #[must_use]
    pub fn on(timer: T, retrier: Retrier) -> Self {
        let common = client::Settings::new(retrier);
        let settings = Settings { common, replay: 64 * 1024, sent: Vec::new() };
        Self { settings: Arc::new(settings), timer }
    }

    /// How many bytes of a request's body are kept, to be sent again. Default 64 KiB. A longer one is sent once.
    #[must_use]
    pub fn replay_limit(self, bytes: usize) -> Self {
        self.change(|settings| settings.replay = bytes)
    }

    /// How far a request has come that failed with an error of this type. Built in: I/O errors, bare or inside a
    /// `Box<dyn Error + Send + Sync>`, that say that no connection was made.
    #[must_use]
    pub fn sent<E: Any>(self, how_far: impl Fn(&E) -> Sent + Send + Sync + 'static) -> Self {
        self.change(|settings| settings.sent.push(Arc::new(move |error| error.downcast_ref().map(&how_far))))
    }

    fn common(self, change: impl FnOnce(&mut client::Settings<request::Parts>)) -> Self {
        self.change(|settings| change(&mut settings.common))
    }

    fn change(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

client::steps!([T] RetryLayer<T>, request::Parts);

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
