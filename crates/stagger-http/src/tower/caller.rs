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

use crate::number::whole;
use crate::{ATTEMPT, Deadline, TIMEOUT, grpc};

/// The number of the attempt that a request is, by its caller's count, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallersAttempt(pub u32);

/// For servers: reads what a caller says of itself, and keeps to it.
///
/// - [`x-retry-attempt`](ATTEMPT) or `grpc-previous-rpc-attempts`: the caller retries. Calls that are made while the request
///   is handled stand down, see [`stagger::scope`]; [`CallersAttempt`] is among the request's extensions.
/// - [`stagger-timeout-ms`](TIMEOUT) or `grpc-timeout`: how long the caller waits. [`Deadline`] is among the request's
///   extensions; put it into those of the requests that are made for this one.
///
/// What cannot be read is as good as not there. Both are the caller's word: where anybody may call, have the headers removed at
/// the border, for whoever sends them decides whether this hop's own calls are retried.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallerLayer<C> {
    clock: C,
}

#[cfg(feature = "tokio")]
impl CallerLayer<stagger::time::Tokio> {
    /// By tokio's clock.
    #[must_use]
    pub const fn new() -> Self {
        Self::on(stagger::time::Tokio)
    }
}

impl<C> CallerLayer<C> {
    /// By this clock.
    #[must_use]
    pub const fn on(clock: C) -> Self {
        Self { clock }
    }
}

impl<S, C: Clone> Layer<S> for CallerLayer<C> {
    type Service = Caller<S, C>;

    fn layer(&self, inner: S) -> Caller<S, C> {
        Caller { inner, clock: self.clock.clone() }
    }
}

/// What [`CallerLayer`] makes.
#[derive(Clone, Copy)]
pub struct Caller<S, C> {
    inner: S,
    clock: C,
}

impl<S, C, B> Service<Request<B>> for Caller<S, C>
where
    S: Service<Request<B>>,
    C: Clock,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = CallerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(left) = timeout(request.headers()) {
            request.extensions_mut().insert(Deadline(self.clock.now().saturating_add(left)));
        }
        let attempt = attempt(request.headers());
        if let Some(attempt) = attempt {
            request.extensions_mut().insert(CallersAttempt(attempt));
        }
        let future = self.inner.call(request);
        let handling = match attempt {
            Some(_) => Handling::Inside { future: scope::inside(future) },
            None => Handling::Alone { future },
        };
        CallerFuture { handling }
    }
}

fn attempt(headers: &HeaderMap) -> Option<u32> {
    let number = |name| u32::try_from(whole(headers.get(name)?.to_str().ok()?)?).ok();
    let previous = || number(grpc::PREVIOUS_ATTEMPTS)?.checked_add(1);
    number(ATTEMPT).filter(|&number| number > 0).or_else(previous)
}

/// What is left, by either header; the less if both are there.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let millis = headers.get(TIMEOUT).and_then(|value| whole(value.to_str().ok()?)).map(Duration::from_millis);
    millis.into_iter().chain(grpc::timeout_of(headers)).min()
}

impl<S: fmt::Debug, C> fmt::Debug for Caller<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("inner", &self.inner).finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of [`Caller`]: the service's own, under a mark if the caller retries.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct CallerFuture<F> {
        #[pin]
        handling: Handling<F>,
    }
}

pin_project! {
    #[project = HandlingProjected]
    #[derive(Debug)]
    enum Handling<F> {
        // The caller does not retry, as far as it says.
        Alone { #[pin] future: F },
        Inside { #[pin] future: Scoped<F> },
    }
}

impl<F: Future> Future for CallerFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().handling.project() {
            HandlingProjected::Alone { future } => future.poll(cx),
            HandlingProjected::Inside { future } => future.poll(cx),
        }
    }
}
