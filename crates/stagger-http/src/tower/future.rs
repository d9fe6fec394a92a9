use core::fmt;
use core::future::Future;
use core::mem;
use core::ops::ControlFlow;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use stagger::observe::EventError;
use stagger::time::Sleep;
use stagger::{Attempt, FailureKind, Outcome, PollRetry, Rejected};
use tower_service::Service;

use super::layer::{LayerSettings, SharedSettings};
use super::replay::ReplayBody;
use super::replayable_request::ReplayableRequest;
use crate::client::{
    AttemptSpan, BodyDrain, CredentialFuture, StatusFailure, outcome_of_error, poll_begin, poll_refresh,
};
use crate::request::RequestProgress;

pin_project! {
    /// The response future of [`RetryService`](super::RetryService): one call with all of its attempts.
    ///
    /// Nothing is boxed except a credential refresh. Cancel-safe: dropping it cancels the attempt in flight and
    /// releases what the call holds.
    #[must_use = "futures do nothing unless polled"]
    #[project = Projected]
    pub struct ResponseFuture<S, T, B, R>
    where
        S: Service<Request<ReplayBody<B>>>,
        B: Body,
        T: Sleep,
        T: Clone,
    {
        service: S,
        timer: T,
        call: PollRetry<T, SharedSettings>,
        request: ReplayableRequest<B>,
        // The attempt in progress, from the moment it is allowed to begin.
        attempt: Option<Attempt>,
        span: AttemptSpan,
        // Before the first attempt, the caller has polled the service for readiness.
        is_ready: bool,
        drain: Option<BodyDrain<R, T::Sleeping>>,
        refresh: Option<Box<PendingRefresh<R>>>,
        last: Option<S::Error>,
        #[pin]
        calling: Option<S::Future>,
    }
}

/// A credential refresh in progress, and the response that caused it.
struct PendingRefresh<R> {
    credentials: CredentialFuture,
    response: Response<R>,
    failure: StatusFailure,
}

impl<S, T, B, R> ResponseFuture<S, T, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
    T: Sleep + Clone,
    B: Body<Data = Bytes> + Unpin,
{
    pub(super) fn new(service: S, request: Request<B>, settings: &Arc<LayerSettings>, timer: T) -> Self {
        let mut request = ReplayableRequest::new(request, settings);
        let shared = SharedSettings(Arc::clone(settings));
        let call = PollRetry::from_retrier(shared, timer.clone(), request.deadline(&timer));
        Self {
            service,
            call: call.untimed().late_target(|| request.guard_key()),
            timer,
            request,
            attempt: None,
            span: AttemptSpan::default(),
            is_ready: true,
            drain: None,
            refresh: None,
            last: None,
            calling: None,
        }
    }
}

/// What a step of the call leads to: the next one, or the end.
type Step<R, E> = ControlFlow<Result<Response<R>, Error<E>>>;

/// A poll goes on where the last one has left off. `failed_at` decides after every failure whether a retry follows.
///
/// ```text
///        ┌──────────────────────────────────────────────────────┐
///        ▼                                                      │ a retry follows
///   waiting ───▶ preparing ───▶ in flight ───▶ refreshing ──────┤
///   no attempt   attempt        calling        refresh          │ none follows, or success
///   (backoff,    (poll_ready)   (the inner     (credentials,    ▼
///    guards)                     future)        after 401, 403) end
/// ```
///
/// The second line names the field that tells the state. While it is waiting, the call holds nothing of the inner
/// service: no readiness, no connection.
impl<S, T, B, R> Future for ResponseFuture<S, T, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone,
    S::Error: EventError + Unpin,
    T: Sleep + Clone,
    B: Body<Data = Bytes> + Unpin,
    R: Body + Unpin,
{
    type Output = Result<Response<R>, Error<S::Error>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let step = if this.calling.is_some() {
                this.poll_in_flight(cx)
            } else if let Some(refresh) = this.refresh.take() {
                this.poll_refreshing(refresh, cx)
            } else if let Some(attempt) = *this.attempt {
                this.poll_preparing(attempt, cx)
            } else {
                this.poll_waiting(cx)
            };
            if let ControlFlow::Break(end) = ready!(step) {
                return Poll::Ready(end);
            }
        }
    }
}

impl<S, T, B, R> Projected<'_, S, T, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone,
    S::Error: EventError + Unpin,
    T: Sleep + Clone,
    B: Body<Data = Bytes> + Unpin,
    R: Body + Unpin,
{
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Step<R, S::Error>> {
        match poll_begin(self.call, self.drain, cx) {
            Poll::Pending => {
                // A wait holds nothing that the inner service has reserved for the request.
                if mem::take(self.is_ready) {
                    *self.service = self.service.clone();
                }
                Poll::Pending
            }
            Poll::Ready(Ok(attempt)) => {
                *self.attempt = Some(attempt);
                Poll::Ready(Step::Continue(()))
            }
            // The caller learns more from the last error than from the guard that rejected the retry after it.
            Poll::Ready(Err(rejected)) => Poll::Ready(Step::Break(Err(match self.last.take() {
                Some(error) => Error::Service(error),
                None => Error::Rejected(rejected),
            }))),
        }
    }

    /// Waits until the service is ready, and sends the request.
    fn poll_preparing(&mut self, attempt: Attempt, cx: &mut Context<'_>) -> Poll<Step<R, S::Error>> {
        if !mem::take(self.is_ready) {
            match self.call.prepare(|| self.service.poll_ready(cx)) {
                Poll::Ready(Ok(())) => {}
                // By tower's contract, a service that fails in `poll_ready` must be discarded.
                Poll::Ready(Err(error)) => {
                    *self.attempt = None;
                    let outcome = Outcome::UnsafeToRetry { kind: FailureKind::LocalExhaustion, hint: None };
                    let _ = self.call.failed_at(|| self.request.guard_key(), outcome, Some(&error));
                    return Poll::Ready(Step::Break(Err(Error::Service(error))));
                }
                Poll::Pending => {
                    ready!(self.call.poll_limit(cx));
                    *self.attempt = None;
                    // Nothing was sent; the client itself had no capacity.
                    return Poll::Ready(
                        self.timed_out(Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }),
                    );
                }
            }
        }
        let request = self.request.next_attempt(attempt, self.call.retrier(), cx);
        self.span.begin(request.method(), request.uri().host(), attempt);
        let calling = self.call.attempt(|| self.span.enter(|| self.service.call(request)));
        self.calling.set(Some(calling));
        Poll::Ready(Step::Continue(()))
    }

    fn poll_in_flight(&mut self, cx: &mut Context<'_>) -> Poll<Step<R, S::Error>> {
        let Some(calling) = self.calling.as_mut().as_pin_mut() else { return Poll::Ready(Step::Continue(())) };
        let end = match self.call.attempt(|| self.span.enter(|| calling.poll(cx))) {
            Poll::Ready(end) => Some(end),
            Poll::Pending => {
                ready!(self.call.poll_limit(cx));
                None
            }
        };
        // Releases what the attempt holds before the backoff, and before the caller continues.
        self.calling.set(None);
        *self.attempt = None;
        Poll::Ready(match end {
            Some(Ok(response)) => self.on_response(response),
            Some(Err(error)) => self.on_error(error),
            None => {
                self.span.timed_out();
                let progress = RequestProgress::MaybeProcessed;
                let outcome = self.request.on_failure(Outcome::TRANSIENT, progress, self.call.retrier());
                self.timed_out(outcome)
            }
        })
    }

    fn poll_refreshing(
        &mut self,
        mut refresh: Box<PendingRefresh<R>>,
        cx: &mut Context<'_>,
    ) -> Poll<Step<R, S::Error>> {
        let Poll::Ready(fresh) = poll_refresh(self.call, &mut refresh.credentials, cx) else {
            *self.refresh = Some(refresh);
            return Poll::Pending;
        };
        let PendingRefresh { response, failure, .. } = *refresh;
        let outcome = self.request.on_refreshed(fresh, self.call.retrier());
        Poll::Ready(self.on_failed_response(outcome, failure, response))
    }

    fn on_response(&mut self, response: Response<R>) -> Step<R, S::Error> {
        self.span.answered(response.status());
        let Some((outcome, failure)) = self.request.on_response(&response, self.call.retrier()) else {
            self.call.succeeded_at(|| self.request.guard_key());
            return Step::Break(Ok(response));
        };
        if let Some(credentials) = self.request.refresh(self.call.retrier()) {
            *self.refresh = Some(Box::new(PendingRefresh { credentials, response, failure }));
            return Step::Continue(());
        }
        self.on_failed_response(outcome, failure, response)
    }

    /// Decides about a failed response. If it is the last, the caller gets it; otherwise its body is drained.
    fn on_failed_response(
        &mut self,
        outcome: Outcome,
        failure: StatusFailure,
        response: Response<R>,
    ) -> Step<R, S::Error> {
        if self.call.failed_at(|| self.request.guard_key(), outcome, Some(&failure)).is_some() {
            return Step::Break(Ok(response));
        }
        *self.drain = BodyDrain::new(response.into_body(), self.timer);
        Step::Continue(())
    }

    fn on_error(&mut self, error: S::Error) -> Step<R, S::Error> {
        self.span.failed();
        let link = self.call.as_error(&error);
        let progress = self.call.retrier().request_progress(&error, link);
        let explicit = self.call.explicit_outcome(&error);
        let outcome =
            outcome_of_error(explicit, progress, link, || match self.call.retrier().default_outcome(&error) {
                Some(outcome) => outcome,
                None => self.call.outcome(&error),
            });
        let outcome = self.request.on_failure(outcome, progress, self.call.retrier());
        if self.call.failed_at(|| self.request.guard_key(), outcome, Some(&error)).is_some() {
            return Step::Break(Err(Error::Service(error)));
        }
        *self.last = Some(error);
        Step::Continue(())
    }

    /// Decides about an attempt whose time is up.
    fn timed_out(&mut self, outcome: Outcome) -> Step<R, S::Error> {
        if self.call.failed_at::<StatusFailure, _>(|| self.request.guard_key(), outcome, None).is_some() {
            return Step::Break(Err(Error::Rejected(Rejected::TimedOut)));
        }
        Step::Continue(())
    }
}

impl<S, T, B, R> fmt::Debug for ResponseFuture<S, T, B, R>
where
    S: Service<Request<ReplayBody<B>>>,
    B: Body,
    T: Sleep + Clone,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("call", &self.call).finish_non_exhaustive()
    }
}

/// The error of a request that ended without a response.
///
/// Either the service or the retrier ended it, so the enum is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// The service's own error, from the last attempt.
    Service(E),
    /// A guard rejected the attempt, such as an open circuit breaker, the deadline had passed, or the last attempt
    /// timed out.
    Rejected(Rejected),
}

impl<E> Error<E> {
    /// Returns the service's own error, if it is one.
    pub fn into_service_error(self) -> Option<E> {
        if let Self::Service(error) = self { Some(error) } else { None }
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(error) => error.fmt(f),
            Self::Rejected(refused) => refused.fmt(f),
        }
    }
}

/// Transparent for the service's error: the source is that error's source.
impl<E: core::error::Error + 'static> core::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Service(error) => error.source(),
            Self::Rejected(refused) => refused.source(),
        }
    }
}
