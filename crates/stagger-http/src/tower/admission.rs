use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use http::{HeaderMap, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use stagger::{admission::Admission, admission::Admit, time::Clock};
use tower_layer::Layer;
use tower_service::Service;

use crate::admission::{Place, Places, ask, refuse};

/// For servers: lets in what the server can take, and gives everybody else an appointment.
///
/// A refusal is an answer with the status 503, an empty body, and
///
/// - `Retry-After`, in whole seconds, rounded up, for any client;
/// - [`stagger-slot`](crate::advice::SLOT), in milliseconds and with a ticket, for clients that bring it back in
///   [`stagger-ticket`](crate::advice::TICKET), as [`RetryLayer`](super::RetryLayer) does; where there is no appointment
///   to be had, `retry-after-ms`.
///
/// So a herd comes back as a line; see [`Admission`]. The request is not read, and the service behind is not asked.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::Empty;
/// use stagger::admission::Admission;
/// use stagger_http::tower::AdmissionLayer;
/// use tower::{ServiceBuilder, ServiceExt as _, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// # let handler = service_fn(|_: Request<Empty<Bytes>>| async { Ok::<_, std::io::Error>(Response::new(Empty::<Bytes>::new())) });
/// let admission = Admission::per_second(100).burst(1).build()?;
/// let server = ServiceBuilder::new().layer(AdmissionLayer::new(admission).concurrency(50)).service(handler);
///
/// let request = || Request::new(Empty::new());
/// assert_eq!(server.clone().oneshot(request()).await?.status(), 200);
/// let refused = server.clone().oneshot(request()).await?;
/// assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"1".parse()?));
/// assert!(refused.headers()["stagger-slot"].to_str()?.starts_with("10;token="));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AdmissionLayer<C> {
    gate: Arc<Gate>,
    clock: C,
}

struct Gate {
    admission: Arc<Admission>,
    places: Places,
}

#[cfg(feature = "tokio")]
impl AdmissionLayer<stagger::time::Tokio> {
    /// By tokio's clock. An `Arc` of the admission can be kept, for its snapshot, or shared with other listeners.
    pub fn new(admission: impl Into<Arc<Admission>>) -> Self {
        Self::on(stagger::time::Tokio, admission)
    }
}

impl<C> AdmissionLayer<C> {
    /// By this clock.
    pub fn on(clock: C, admission: impl Into<Arc<Admission>>) -> Self {
        Self::with(clock, admission.into(), usize::MAX)
    }

    fn with(clock: C, admission: Arc<Admission>, most: usize) -> Self {
        Self { gate: Arc::new(Gate { admission, places: Places::new(most) }), clock }
    }

    /// At most so many are handled at a time; whoever comes beyond gets an appointment. Default: no limit.
    #[must_use]
    pub fn concurrency(self, most: usize) -> Self {
        Self::with(self.clock, Arc::clone(&self.gate.admission), most)
    }

    /// How many are being handled.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.gate.places.taken()
    }
}

impl<S, C: Clone> Layer<S> for AdmissionLayer<C> {
    type Service = AdmissionService<S, C>;

    fn layer(&self, inner: S) -> AdmissionService<S, C> {
        AdmissionService { inner, gate: Arc::clone(&self.gate), clock: self.clock.clone() }
    }
}

impl<C> fmt::Debug for AdmissionLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionLayer").field("admission", &self.gate.admission).finish_non_exhaustive()
    }
}

/// What [`AdmissionLayer`] makes.
#[derive(Clone)]
pub struct AdmissionService<S, C> {
    inner: S,
    gate: Arc<Gate>,
    clock: C,
}

impl<S: fmt::Debug, C> fmt::Debug for AdmissionService<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, C, B, R> Service<Request<B>> for AdmissionService<S, C>
where
    S: Service<Request<B>, Response = Response<R>>,
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
        let handling = match self.gate.let_in(request.headers(), &self.clock) {
            Ok(place) => Handling::Inside { future: self.inner.call(request), place },
            Err(answer) => {
                let mut response = Response::new(R::default());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                refuse(answer, response.headers_mut());
                Handling::Refused { answer: Some(response) }
            }
        };
        AdmissionFuture { handling }
    }
}

impl Gate {
    fn let_in(&self, headers: &HeaderMap, clock: &impl Clock) -> Result<Place, Admit> {
        let now = clock.now();
        // The place is taken first: a ticket that was let in is used up.
        let place = self.places.take().ok_or_else(|| self.admission.reserve(now))?;
        let answer = ask(&self.admission, headers, now);
        if answer == Admit::Now { Ok(place) } else { Err(answer) }
    }
}

pin_project! {
    /// The future of [`AdmissionService`]. A place that was taken is free again when it is ready or dropped; the body of the
    /// answer may then still be on its way.
    #[must_use = "futures do nothing unless polled"]
    pub struct AdmissionFuture<F, R> {
        #[pin]
        handling: Handling<F, R>,
    }
}

pin_project! {
    #[project = HandlingProjected]
    enum Handling<F, R> {
        Inside { #[pin] future: F, place: Place },
        Refused { answer: Option<Response<R>> },
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
        match this.handling.as_mut().project() {
            HandlingProjected::Inside { future, .. } => {
                let answer = ready!(future.poll(cx));
                // The place is free at once, however long the future is kept.
                this.handling.set(Handling::Refused { answer: None });
                Poll::Ready(answer)
            }
            // There is nothing more after the end.
            HandlingProjected::Refused { answer } => {
                answer.take().map_or(Poll::Pending, |answer| Poll::Ready(Ok(answer)))
            }
        }
    }
}
