use core::any::Any;
use core::borrow::Borrow;
use core::error;
use core::fmt;
use core::ops::Deref;
use core::task::{Context, Poll};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, request};
use http_body::Body;
use stagger::observe::EventError;
use stagger::time::Sleep;
use stagger::{Outcome, Retrier};
use tower_layer::Layer;
use tower_service::Service;

use super::future::{Error, ResponseFuture};
use super::replay::ReplayBody;
use crate::client;
use crate::request::RequestProgress;

/// A layer that retries the requests of a service. See the [module](super) for what it does.
///
/// The service must be `Clone`, and accept requests with another body than the layer: for a `Request<B>`, it gets a
/// `Request<`[`ReplayBody<B>`](super::ReplayBody)`>`. So make it generic over its body, or convert the body below the
/// layer.
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
/// let response = client.oneshot(Request::get("/").body(Full::<Bytes>::default()).unwrap()).await.unwrap();
/// assert_eq!(response.status(), 200);
/// # });
/// ```
#[derive(Clone)]
pub struct RetryLayer<T> {
    settings: Arc<LayerSettings>,
    timer: T,
}

#[cfg(feature = "tokio")]
impl RetryLayer<stagger::time::Tokio> {
    /// Creates a layer that retries according to a policy or through a [`Retrier`], with its budget, circuit breaker,
    /// rules, listeners and operator controls, on tokio's timer.
    ///
    /// Each origin, which is a scheme, a host and a port, has guards of its own, with the settings of those that the
    /// retrier was given: a host that is down does not stop the calls to the others. Up to 1,000 origins have their
    /// own; see [`Keyed`](stagger::guard::Keyed). For other [keys](crate::key) than the origin, see
    /// [`guards_by`](Self::guards_by). For one guard for all origins, or to share it with other clients, give the
    /// retrier a [shared](Retrier::shared_guard) one.
    #[must_use]
    pub fn new(retrier: impl Into<Retrier>) -> Self {
        Self::with_timer(stagger::time::Tokio, retrier)
    }
}

impl<T> RetryLayer<T> {
    /// Creates a layer like [`new`](RetryLayer::new), on `timer`.
    #[must_use]
    pub fn with_timer(timer: T, retrier: impl Into<Retrier>) -> Self {
        let common = client::RetrySettings::new(look_into_known(retrier.into()));
        let settings = LayerSettings { common, replay: 64 * 1024, progress: Vec::new(), outcome: None };
        Self { settings: Arc::new(settings), timer }
    }

    /// Sets how many bytes of a request's body are buffered for replay. A longer body is sent once, and its request is
    /// not retried after that. Default: 64 KiB.
    #[must_use]
    pub fn replay_limit(self, bytes: usize) -> Self {
        self.update(|settings| settings.replay = bytes)
    }

    /// Sets how far a request got that failed with an error of type `E`. The first rule for the type applies.
    ///
    /// Built in: [`RequestProgress::from_error`] for errors that the retrier can examine: an [`std::io::Error`], a
    /// `Box<dyn Error>` or the like, with the feature `hyper` the errors of hyper, hyper-util's client and h2, and
    /// types that it has a rule for or [looks into](Retrier::look_into). Errors of other types without a rule are
    /// [`RequestProgress::MaybeProcessed`].
    #[must_use]
    pub fn classify_progress<E: Any>(self, classify: impl Fn(&E) -> RequestProgress + Send + Sync + 'static) -> Self {
        self.update(|settings| settings.progress.push(Arc::new(move |error| error.downcast_ref().map(&classify))))
    }

    /// Adds the rules for requests to object stores. Those of the application come first. `outcome` and `progress` are
    /// for the errors of their clients.
    #[cfg(any(feature = "object-store", feature = "opendal"))]
    pub(crate) fn for_storage<E: error::Error + 'static>(
        self,
        outcome: fn(&E) -> Outcome,
        progress: fn(&E) -> RequestProgress,
    ) -> Self {
        let layer = self.classify_progress(progress).update_common(|settings| {
            settings.retrier = settings.retrier.clone().look_into::<E>();
            settings.conditional_writes = client::ConditionalWrites::OnlyIfUnsent;
            let declared = settings.idempotent_if.take();
            settings.idempotent_if = Some(Arc::new(move |head: &request::Parts| {
                crate::storage::is_idempotent(head) || declared.as_ref().is_some_and(|declared| declared(head))
            }));
        });
        layer.update(|settings| settings.outcome = Some(Arc::new(move |error| error.downcast_ref().map(outcome))))
    }

    fn update_common(self, change: impl FnOnce(&mut client::RetrySettings<request::Parts>)) -> Self {
        self.update(|settings| change(&mut settings.common))
    }

    fn update(mut self, change: impl FnOnce(&mut LayerSettings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

/// Lets the retrier examine the errors that tell how far a request got.
fn look_into_known(retrier: Retrier) -> Retrier {
    let retrier = retrier.look_into::<::tower::load_shed::error::Overloaded>();
    #[cfg(feature = "hyper")]
    let retrier =
        retrier.look_into::<hyper_util::client::legacy::Error>().look_into::<hyper::Error>().look_into::<h2::Error>();
    retrier
}

client::retry_options!([T] RetryLayer<T>, request::Parts);

impl<S: Clone, T: Clone> Layer<S> for RetryLayer<T> {
    type Service = RetryService<S, T>;

    fn layer(&self, inner: S) -> RetryService<S, T> {
        RetryService { inner, settings: Arc::clone(&self.settings), timer: self.timer.clone() }
    }
}

impl<T> fmt::Debug for RetryLayer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// A service that retries its requests: the service of a [`RetryLayer`](super::RetryLayer).
///
/// It is a `Service<Request<B>>` if the inner service is `Clone` and a
/// `Service<Request<`[`ReplayBody<B>`](super::ReplayBody)`>>`. Otherwise the compiler says, for example, that the
/// method `oneshot` exists, but its trait bounds were not satisfied.
#[derive(Clone)]
pub struct RetryService<S, T> {
    pub(super) inner: S,
    pub(super) settings: Arc<LayerSettings>,
    pub(super) timer: T,
}

impl<S, T, B, R> Service<Request<B>> for RetryService<S, T>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone,
    S::Error: EventError + Unpin,
    T: Sleep + Clone,
    B: Body<Data = Bytes> + Unpin,
    R: Body + Unpin,
{
    type Response = Response<R>;
    type Error = Error<S::Error>;
    type Future = ResponseFuture<S, T, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Error::Service)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // `poll_ready` was called on `self.inner`, so the call uses that one and leaves the clone.
        let clone = self.inner.clone();
        let ready = core::mem::replace(&mut self.inner, clone);
        ResponseFuture::new(ready, request, &self.settings, self.timer.clone())
    }
}

impl<S: fmt::Debug, T> fmt::Debug for RetryService<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryService")
            .field("inner", &self.inner)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// A call's reference to its settings: the only reference count that a request increments.
#[derive(Clone, Debug)]
pub(super) struct SharedSettings(pub(super) Arc<LayerSettings>);

impl Deref for SharedSettings {
    type Target = LayerSettings;

    fn deref(&self) -> &LayerSettings {
        &self.0
    }
}

impl Borrow<Retrier> for SharedSettings {
    fn borrow(&self) -> &Retrier {
        &self.0.common.retrier
    }
}

/// The settings of a [`RetryLayer`](super::RetryLayer), shared by all of its calls.
#[derive(Clone)]
pub(super) struct LayerSettings {
    pub(super) common: client::RetrySettings<request::Parts>,
    /// The replay limit for bodies, in bytes.
    pub(super) replay: usize,
    /// The rules for how far a failed request got; the first one for the error's type applies.
    pub(super) progress: Vec<ProgressRule>,
    /// The rule for errors that the retrier has none for, before its built-in ones.
    pub(super) outcome: Option<OutcomeRule>,
}

type OutcomeRule = Arc<dyn Fn(&dyn Any) -> Option<Outcome> + Send + Sync>;
pub(super) type ProgressRule = Arc<dyn Fn(&dyn Any) -> Option<RequestProgress> + Send + Sync>;

impl LayerSettings {
    /// Returns the outcome of an error that the retrier has no rule for, if there is a rule here.
    pub(super) fn default_outcome(&self, error: &dyn Any) -> Option<Outcome> {
        let rule = self.outcome.as_ref()?;
        rule(error)
    }

    /// Returns how far the request got that failed with this error, which is `link` as a trait object: by the first
    /// rule for its type, or else by its chain.
    pub(super) fn request_progress(
        &self,
        error: &dyn Any,
        link: Option<&(dyn error::Error + 'static)>,
    ) -> RequestProgress {
        if let Some(progress) = self.progress.iter().find_map(|rule| rule(error)) {
            return progress;
        }
        link.map_or(RequestProgress::MaybeProcessed, RequestProgress::from_error)
    }
}

impl fmt::Debug for LayerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerSettings")
            .field("common", &self.common)
            .field("replay", &self.replay)
            .finish_non_exhaustive()
    }
}
