use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use http::{HeaderMap, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use stagger::admission::{Admission, AdmissionControl, Admit};
use stagger::time::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_layer::Layer;
use tower_service::Service;

use crate::admission::{set_rejection_headers, try_admit};

/// Admission control for servers: admits the load that the server can handle, and assigns each other client a return
/// time.
///
/// A rejection is a response with the status 503, an empty body, and these headers:
///
/// - `Retry-After`, in whole seconds, rounded up, for any client;
/// - [`stagger-reservation`](crate::header::RESERVATION), in milliseconds and with a token, for clients that return the
///   token in [`stagger-reservation-token`](crate::header::RESERVATION_TOKEN), as [`RetryLayer`](super::RetryLayer)
///   does;
/// - `retry-after-ms` in its place if no reservation is available.
///
/// A thundering herd is thus spread to the rate of the server; see [`Admission`]. The body of a rejected request is not
/// read, and the inner service is not called: what it reserved when it became ready is released, for which it must be
/// `Clone`.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::Empty;
/// use stagger::admission::{Admission, random_secret};
/// use stagger_http::tower::AdmissionLayer;
/// use tower::{ServiceBuilder, ServiceExt as _, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// # let handler = service_fn(|_: Request<Empty<Bytes>>| async {
/// #     Ok::<_, std::io::Error>(Response::new(Empty::<Bytes>::new()))
/// # });
/// let admission = Admission::per_second(100).burst(1).build(random_secret())?;
/// let server = ServiceBuilder::new().layer(AdmissionLayer::new(admission).max_concurrent(50)).service(handler);
///
/// let request = || Request::new(Empty::new());
/// assert_eq!(server.clone().oneshot(request()).await?.status(), 200);
/// let rejected = server.clone().oneshot(request()).await?;
/// assert_eq!((rejected.status().as_u16(), &rejected.headers()["retry-after"]), (503, &"1".parse()?));
/// assert!(rejected.headers()["stagger-reservation"].to_str()?.starts_with("10;token="));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AdmissionLayer<C> {
    limits: Arc<Limits>,
    clock: C,
}

struct Limits {
    admission: Arc<dyn AdmissionControl>,
    max_concurrent: usize,
    semaphore: Arc<Semaphore>,
}

#[cfg(feature = "tokio")]
impl AdmissionLayer<stagger::time::Tokio> {
    /// Creates a layer on tokio's clock. Pass an `Arc` to keep access to the admission's snapshot, or to share it with
    /// other listeners.
    pub fn new(admission: impl Into<Arc<Admission>>) -> Self {
        Self::with_clock(stagger::time::Tokio, admission)
    }
}

impl<C> AdmissionLayer<C> {
    /// Creates a layer on `clock`.
    pub fn with_clock(clock: C, admission: impl Into<Arc<Admission>>) -> Self {
        Self::with_control(clock, admission.into())
    }

    /// Creates a layer on `clock` with an admission of another kind, such as one that all servers behind a balancer
    /// share.
    pub fn with_control(clock: C, admission: Arc<dyn AdmissionControl>) -> Self {
        Self::with_limit(clock, admission, usize::MAX)
    }

    fn with_limit(clock: C, admission: Arc<dyn AdmissionControl>, limit: usize) -> Self {
        let max_concurrent = limit.min(Semaphore::MAX_PERMITS);
        let semaphore = Arc::new(Semaphore::new(max_concurrent));
        Self { limits: Arc::new(Limits { admission, max_concurrent, semaphore }), clock }
    }

    /// Sets how many requests are processed concurrently; further ones are rejected with a reservation. Default: no
    /// limit.
    #[must_use]
    pub fn max_concurrent(self, limit: usize) -> Self {
        Self::with_limit(self.clock, Arc::clone(&self.limits.admission), limit)
    }

    /// Returns the number of requests being processed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.limits.max_concurrent - self.limits.semaphore.available_permits()
    }
}

impl<S, C: Clone> Layer<S> for AdmissionLayer<C> {
    type Service = AdmissionService<S, C>;

    fn layer(&self, inner: S) -> AdmissionService<S, C> {
        AdmissionService { inner, limits: Arc::clone(&self.limits), clock: self.clock.clone() }
    }
}

impl<C> fmt::Debug for AdmissionLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionLayer").field("admission", &self.limits.admission).finish_non_exhaustive()
    }
}

/// The service of an [`AdmissionLayer`].
#[derive(Clone)]
pub struct AdmissionService<S, C> {
    inner: S,
    limits: Arc<Limits>,
    clock: C,
}

impl<S: fmt::Debug, C> fmt::Debug for AdmissionService<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, C, B, R> Service<Request<B>> for AdmissionService<S, C>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    C: Clock,
    R: Default,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = AdmissionFuture<S::Future, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let state = match self.limits.admit(request.headers(), &self.clock) {
            Ok(permit) => State::InFlight { future: self.inner.call(request), permit },
            Err(rejection) => {
                // `poll_ready` may have reserved a permit in the inner service; a clone holds none.
                self.inner = self.inner.clone();
                let mut response = Response::new(R::default());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                set_rejection_headers(rejection, response.headers_mut());
                State::Rejected { response: Some(response) }
            }
        };
        AdmissionFuture { state }
    }
}

impl Limits {
    /// Returns a concurrency permit for an admitted request, or the rejection.
    fn admit(&self, headers: &HeaderMap, clock: &impl Clock) -> Result<OwnedSemaphorePermit, Admit> {
        let now = clock.now();
        // The permit comes first: admission redeems the token, which then could not be used again.
        let permit = Arc::clone(&self.semaphore).try_acquire_owned().map_err(|_| self.admission.reserve(now))?;
        let admitted = try_admit(&*self.admission, headers, now);
        if admitted == Admit::Now { Ok(permit) } else { Err(admitted) }
    }
}

pin_project! {
    /// The response future of [`AdmissionService`]. It releases its concurrency permit when it completes or is dropped,
    /// even if the body of the response is still being sent.
    #[must_use = "futures do nothing unless polled"]
    pub struct AdmissionFuture<F, R> {
        #[pin]
        state: State<F, R>,
    }
}

pin_project! {
    #[project = StateProjected]
    enum State<F, R> {
        InFlight { #[pin] future: F, permit: OwnedSemaphorePermit },
        Rejected { response: Option<Response<R>> },
    }
}

impl<F, R> fmt::Debug for AdmissionFuture<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionFuture").finish_non_exhaustive()
    }
}

impl<F, R, E> Future for AdmissionFuture<F, R>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<R>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        match this.state.as_mut().project() {
            StateProjected::InFlight { future, .. } => {
                let response = ready!(future.poll(cx));
                // Releases the permit now, even if the completed future is kept.
                this.state.set(State::Rejected { response: None });
                Poll::Ready(response)
            }
            // Empty once the future has completed.
            StateProjected::Rejected { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response)),
                None => Poll::Pending,
            },
        }
    }
}
