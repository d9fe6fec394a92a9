use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, request};
use http_body::Body;
use pin_project_lite::pin_project;
use stagger::{Attempt, EventError, Kind, Outcome, PolledCall, Refused, Sleep};
use tower_service::Service;

use super::error::Error;
use super::failure::StatusFailure;
use super::judge::Judge;
use super::leftover::Leftover;
use super::replay::ReplayBody;
use super::settings::{AttemptHeader, Settings};
use crate::{Sent, grpc};

const ATTEMPT: HeaderName = HeaderName::from_static("x-retry-attempt");

pin_project! {
    /// A request that is retried: the future of [`Retry`](super::Retry). Nothing of it is boxed. Cancel-safe.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, T, B, R>
    where
        S: Service<Request<ReplayBody<B>>>,
        T: Sleep,
        T: Clone,
    {
        service: S,
        timer: T,
        call: PolledCall<T>,
        message: Message<B>,
        // The attempt that is being made, from the moment that it may begin.
        attempt: Option<Attempt>,
        // The service has been asked before the first.
        is_ready: bool,
        leftover: Option<Leftover<R, T::Sleeping>>,
        last: Option<S::Error>,
        #[pin]
        calling: Option<S::Future>,
    }
}

/// The request, as often as it is sent.
struct Message<B> {
    settings: Arc<Settings>,
    parts: request::Parts,
    body: ReplayBody<B>,
    judge: Judge,
}

impl<B: Body<Data = Bytes> + Unpin> Message<B> {
    /// For this attempt.
    fn make(&mut self, attempt: Attempt) -> Request<ReplayBody<B>> {
        let mut request = Request::from_parts(self.parts.clone(), self.body.again());
        request.extensions_mut().insert(attempt);
        let headers = request.headers_mut();
        if self.settings.attempt_header == AttemptHeader::Sent {
            headers.insert(ATTEMPT, HeaderValue::from(attempt.number));
        }
        if grpc::is_grpc(headers) {
            if attempt.number > 1 {
                headers.insert(grpc::PREVIOUS_ATTEMPTS, HeaderValue::from(attempt.number - 1));
            }
            if let Some(limit) = attempt.time_limit.and_then(|limit| HeaderValue::try_from(grpc::timeout(limit)).ok()) {
                headers.insert(grpc::TIMEOUT, limit);
            }
        }
        request
    }

    /// What came of an attempt without an answer.
    fn failed(&self, outcome: Outcome, sent: Sent) -> Outcome {
        self.judge.bounded(outcome, sent, &self.body)
    }
}

impl<S, T, B, R> ResponseFuture<S, T, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
    T: Sleep + Clone,
    B: Body<Data = Bytes> + Unpin,
{
    pub(super) fn new(service: S, request: Request<B>, settings: &Arc<Settings>, timer: T) -> Self {
        let (parts, body) = request.into_parts();
        let judge = Judge::new(&parts, settings);
        let body = ReplayBody::new(body, settings.replay);
        Self {
            service,
            call: PolledCall::new(&settings.retrier, timer.clone()),
            timer,
            message: Message { settings: Arc::clone(settings), parts, body, judge },
            attempt: None,
            is_ready: true,
            leftover: None,
            last: None,
            calling: None,
        }
    }
}

impl<S, T, B, R> Future for ResponseFuture<S, T, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
    S::Error: EventError,
    T: Sleep + Clone,
    B: Body<Data = Bytes> + Unpin,
    R: Body + Unpin,
{
    type Output = Result<Response<R>, Error<S::Error>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            if let Some(calling) = this.calling.as_mut().as_pin_mut() {
                let Poll::Ready(end) = this.call.attempt(|| calling.poll(cx)) else {
                    ready!(this.call.poll_limit(cx));
                    this.calling.set(None);
                    *this.attempt = None;
                    let outcome = this.message.failed(Outcome::TRANSIENT, Sent::Perhaps);
                    if this.call.failed::<StatusFailure>(outcome, None).is_some() {
                        return Poll::Ready(Err(Error::Refused(Refused::TimedOut)));
                    }
                    continue;
                };
                // Whatever the attempt holds is let go before the sleep, and before the caller goes on.
                this.calling.set(None);
                *this.attempt = None;
                match end {
                    Ok(answer) => {
                        let outcome = this.message.judge.answer(&answer, &this.message.body);
                        if outcome == Outcome::Success {
                            this.call.succeeded();
                            return Poll::Ready(Ok(answer));
                        }
                        let repeat = this.message.judge.repeat(&this.message.body);
                        let failure = StatusFailure { status: answer.status(), repeat };
                        if this.call.failed(outcome, Some(&failure)).is_some() {
                            return Poll::Ready(Ok(answer));
                        }
                        *this.leftover = Leftover::of(answer.into_body(), this.timer);
                    }
                    Err(error) => {
                        let sent = this.message.settings.how_far(&error);
                        let outcome =
                            if sent == Sent::Unprocessed { Outcome::Unprocessed } else { this.call.outcome(&error) };
                        let outcome = this.message.failed(outcome, sent);
                        if this.call.failed(outcome, Some(&error)).is_some() {
                            return Poll::Ready(Err(Error::Service(error)));
                        }
                        *this.last = Some(error);
                    }
                }
            }
            if this.attempt.is_none() {
                let is_drained = this.leftover.as_mut().is_none_or(|leftover| leftover.poll_end(cx).is_ready());
                let begun = this.call.poll_begin(cx);
                if is_drained || begun.is_ready() {
                    *this.leftover = None;
                }
                match ready!(begun) {
                    Ok(attempt) => *this.attempt = Some(attempt),
                    Err(open) => {
                        let refused = Error::Refused(Refused::BreakerOpen(open));
                        return Poll::Ready(Err(this.last.take().map_or(refused, Error::Service)));
                    }
                }
            }
            // There is none after the end.
            let Some(attempt) = *this.attempt else { return Poll::Pending };
            if !core::mem::take(this.is_ready) {
                match this.call.attempt(|| this.service.poll_ready(cx)) {
                    Poll::Ready(Ok(())) => {}
                    // A service that says so is of no more use.
                    Poll::Ready(Err(error)) => {
                        let _ = this.call.failed(Outcome::Unrepeatable(Kind::Local), Some(&error));
                        *this.attempt = None;
                        return Poll::Ready(Err(Error::Service(error)));
                    }
                    Poll::Pending => {
                        ready!(this.call.poll_limit(cx));
                        // Nothing was sent; it was our own side that had no room.
                        *this.attempt = None;
                        let outcome = Outcome::Failed { kind: Kind::Local, hint: None };
                        if this.call.failed::<StatusFailure>(outcome, None).is_some() {
                            return Poll::Ready(Err(Error::Refused(Refused::TimedOut)));
                        }
                        continue;
                    }
                }
            }
            let request = this.message.make(attempt);
            let calling = this.call.attempt(|| this.service.call(request));
            this.calling.set(Some(calling));
        }
    }
}

impl<S, T, B, R> fmt::Debug for ResponseFuture<S, T, B, R>
where
    S: Service<Request<ReplayBody<B>>>,
    T: Sleep + Clone,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("call", &self.call).finish_non_exhaustive()
    }
}
