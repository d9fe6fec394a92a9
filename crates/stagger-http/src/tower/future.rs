use core::fmt;
use core::future::Future;
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

use super::layer::{Settings, SharedSettings};
use super::replay::ReplayBody;
use super::replayable_request::ReplayableRequest;
use crate::client::{
    AttemptSpan, BodyDrain, CredentialFuture, StatusFailure, outcome_of_error, poll_begin, poll_refresh,
};
use crate::request::RequestProgress;

pin_project! {
    /// The response future of [`RetryService`](super::RetryService): one call with all of its attempts.
    ///
    /// Nothing is boxed except a credential refresh. Cancel-safe: dropping it cancels the attempt in flight and releases what
    /// the call holds.
    #[must_use = "futures do nothing unless polled"]
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
    pub(super) fn new(service: S, request: Request<B>, settings: &Arc<Settings>, timer: T) -> Self {
        let mut request = ReplayableRequest::new(request, settings);
        let shared = SharedSettings(Arc::clone(settings));
        let call = PollRetry::from_retrier(shared, timer.clone(), request.deadline(&timer));
        Self {
            service,
            call: settings.common.start(call.untimed()).late_target(|| request.origin()),
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
            if let Some(calling) = this.calling.as_mut().as_pin_mut() {
                let Poll::Ready(end) = this.call.attempt(|| this.span.enter(|| calling.poll(cx))) else {
                    ready!(this.call.poll_limit(cx));
                    this.calling.set(None);
                    *this.attempt = None;
                    this.span.timed_out();
                    let outcome = this.request.on_failure(
                        Outcome::TRANSIENT,
                        RequestProgress::MaybeProcessed,
                        this.call.retrier(),
                    );
                    if this.call.failed_at::<StatusFailure, _>(|| this.request.origin(), outcome, None).is_some() {
                        return Poll::Ready(Err(Error::Rejected(Rejected::TimedOut)));
                    }
                    continue;
                };
                // Releases what the attempt holds before the backoff, and before the caller continues.
                this.calling.set(None);
                *this.attempt = None;
                match end {
                    Ok(response) => {
                        this.span.answered(response.status());
                        let Some((outcome, failure)) = this.request.on_response(&response, this.call.retrier()) else {
                            let success = Outcome::Success;
                            this.call.answered_at(&success, &success, |settings| this.request.quiet_key(settings));
                            this.call.succeeded_at(|| this.request.origin());
                            return Poll::Ready(Ok(response));
                        };
                        let answer = this.request.answer();
                        this.call.answered_at(&answer, &outcome, |settings| this.request.quiet_key(settings));
                        if let Some(credentials) = this.request.refresh(failure, this.call.retrier()) {
                            *this.refresh = Some(Box::new(PendingRefresh { credentials, response, failure }));
                        } else {
                            if this.call.failed_at(|| this.request.origin(), outcome, Some(&failure)).is_some() {
                                return Poll::Ready(Ok(response));
                            }
                            *this.drain = BodyDrain::new(response.into_body(), this.timer);
                        }
                    }
                    Err(error) => {
                        this.span.failed();
                        let link = this.call.as_error(&error);
                        let progress = this.call.retrier().request_progress(&error, link);
                        let explicit = this.call.explicit_outcome(&error);
                        let outcome = outcome_of_error(explicit, progress, link, || {
                            let default = this.call.retrier().default_outcome(&error);
                            default.unwrap_or_else(|| this.call.outcome(&error))
                        });
                        let outcome = this.request.on_failure(outcome, progress, this.call.retrier());
                        if this.call.failed_at(|| this.request.origin(), outcome, Some(&error)).is_some() {
                            return Poll::Ready(Err(Error::Service(error)));
                        }
                        *this.last = Some(error);
                    }
                }
            }
            if let Some(refresh) = this.refresh {
                let fresh = ready!(poll_refresh(this.call, &mut refresh.credentials, cx));
                let Some(PendingRefresh { response, failure, .. }) = this.refresh.take().map(|refresh| *refresh) else {
                    return Poll::Pending;
                };
                let outcome = this.request.on_refreshed(fresh, this.call.retrier());
                if this.call.failed_at(|| this.request.origin(), outcome, Some(&failure)).is_some() {
                    return Poll::Ready(Ok(response));
                }
                *this.drain = BodyDrain::new(response.into_body(), this.timer);
            }
            if this.attempt.is_none() {
                match poll_begin(this.call, this.drain, |settings| this.request.quiet_key(settings), cx) {
                    Poll::Pending => {
                        // A wait holds nothing that the inner service has reserved for the request.
                        if core::mem::take(this.is_ready) {
                            *this.service = this.service.clone();
                        }
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(attempt)) => *this.attempt = Some(attempt),
                    Poll::Ready(Err(rejected)) => {
                        let last = this.last.take();
                        return Poll::Ready(Err(last.map_or(Error::Rejected(rejected), Error::Service)));
                    }
                }
            }
            // Already completed.
            let Some(attempt) = *this.attempt else { return Poll::Pending };
            if !core::mem::take(this.is_ready) {
                match this.call.prepare(|| this.service.poll_ready(cx)) {
                    // The server may have asked for quiet meanwhile.
                    Poll::Ready(Ok(())) if this.call.postponed_at(|settings| this.request.quiet_key(settings)) => {
                        *this.attempt = None;
                        *this.service = this.service.clone();
                        continue;
                    }
                    Poll::Ready(Ok(())) => {}
                    // By tower's contract, a service that fails in `poll_ready` must be discarded.
                    Poll::Ready(Err(error)) => {
                        let _ = this.call.failed_at(
                            || this.request.origin(),
                            Outcome::UnsafeToRetry(FailureKind::LocalExhaustion),
                            Some(&error),
                        );
                        *this.attempt = None;
                        return Poll::Ready(Err(Error::Service(error)));
                    }
                    Poll::Pending => {
                        ready!(this.call.poll_limit(cx));
                        // Nothing was sent; the client itself had no capacity.
                        *this.attempt = None;
                        let outcome = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None };
                        if this.call.failed_at::<StatusFailure, _>(|| this.request.origin(), outcome, None).is_some() {
                            return Poll::Ready(Err(Error::Rejected(Rejected::TimedOut)));
                        }
                        continue;
                    }
                }
            }
            let request = this.request.next_attempt(attempt, this.call.retrier(), cx);
            this.span.begin(request.method(), request.uri().host(), attempt);
            let calling = this.call.attempt(|| this.span.enter(|| this.service.call(request)));
            this.calling.set(Some(calling));
        }
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
    /// The circuit breaker was open, the deadline had passed, or the last attempt timed out.
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
