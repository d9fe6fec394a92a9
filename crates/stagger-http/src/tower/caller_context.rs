use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use http::{HeaderMap, Request};
use pin_project_lite::pin_project;
use stagger::scope::{self, Scoped};
use stagger::time::Clock;
use tower_layer::Layer;
use tower_service::Service;

use crate::client::Deadline;
use crate::grpc;
use crate::header::parse_digits;
use crate::header::{RETRY_ATTEMPT, TIMEOUT_MS};

/// The number of the attempt in the caller's count, from 1, as a request extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerAttempt(u32);

impl CallerAttempt {
    /// Creates the extension for attempt `number`, for tests of handlers that read it.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number of the attempt, from 1.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Context propagation for servers: reads the attempt number and the timeout that a caller sends, and applies them.
///
/// - [`x-retry-attempt`](RETRY_ATTEMPT) or `grpc-previous-rpc-attempts`: the caller retries. Calls made while the
///   request is processed therefore do not retry, see [`stagger::scope`]. The request's extensions contain a
///   [`CallerAttempt`].
/// - [`stagger-timeout-ms`](TIMEOUT_MS) or `grpc-timeout`: the time until the caller gives up; the shorter if both are
///   present. The request's extensions contain a [`Deadline`]; copy it into the extensions of the requests made on
///   behalf of this one.
///
/// Malformed headers are ignored. All of these headers are untrusted input: a client that sends them can turn off this
/// hop's own retries and shorten its deadlines. Strip them at the edge if the service is reachable from outside.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallerContextLayer<C> {
    clock: C,
}

#[cfg(feature = "tokio")]
impl CallerContextLayer<stagger::time::Tokio> {
    /// Creates a layer on tokio's clock.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_clock(stagger::time::Tokio)
    }
}

impl<C> CallerContextLayer<C> {
    /// Creates a layer on `clock`.
    #[must_use]
    pub const fn with_clock(clock: C) -> Self {
        Self { clock }
    }
}

impl<S, C: Clone> Layer<S> for CallerContextLayer<C> {
    type Service = CallerContextService<S, C>;

    fn layer(&self, inner: S) -> CallerContextService<S, C> {
        CallerContextService { inner, clock: self.clock.clone() }
    }
}

/// The service of a [`CallerContextLayer`].
#[derive(Clone, Copy)]
pub struct CallerContextService<S, C> {
    inner: S,
    clock: C,
}

impl<S, C, B> Service<Request<B>> for CallerContextService<S, C>
where
    S: Service<Request<B>>,
    C: Clock,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = CallerContextFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(left) = timeout_of(request.headers()) {
            request.extensions_mut().insert(Deadline::at(self.clock.now().saturating_add(left)));
        }
        let attempt = attempt_of(request.headers());
        if let Some(attempt) = attempt {
            request.extensions_mut().insert(CallerAttempt(attempt));
        }
        let future = self.inner.call(request);
        let state = match attempt {
            Some(_) => State::Nested { future: scope::inside(future) },
            None => State::Plain { future },
        };
        CallerContextFuture { state }
    }
}

fn attempt_of(headers: &HeaderMap) -> Option<u32> {
    let number = |name| u32::try_from(parse_digits(headers.get(name)?.to_str().ok()?)?).ok();
    match number(RETRY_ATTEMPT) {
        Some(number @ 1..) => Some(number),
        // gRPC counts the attempts before this one.
        _ => number(grpc::PREVIOUS_ATTEMPTS)?.checked_add(1),
    }
}

/// Returns the shorter of the timeouts in the two headers.
fn timeout_of(headers: &HeaderMap) -> Option<Duration> {
    let millis = || parse_digits(headers.get(TIMEOUT_MS)?.to_str().ok()?);
    match (millis().map(Duration::from_millis), grpc::timeout_of(headers)) {
        (Some(own), Some(grpc)) => Some(own.min(grpc)),
        (own, grpc) => own.or(grpc),
    }
}

impl<S: fmt::Debug, C> fmt::Debug for CallerContextService<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerContextService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

pin_project! {
    /// The response future of [`CallerContextService`]: the inner service's future, in a retry scope if the caller
    /// retries.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct CallerContextFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProjected]
    #[derive(Debug)]
    enum State<F> {
        // The caller has not announced that it retries.
        Plain { #[pin] future: F },
        Nested { #[pin] future: Scoped<F> },
    }
}

impl<F: Future> Future for CallerContextFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().state.project() {
            StateProjected::Plain { future } => future.poll(cx),
            StateProjected::Nested { future } => future.poll(cx),
        }
    }
}
