use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use stagger::{Attempt, FailureKind, Outcome, PollRetry, Rejected, observe::EventError, time::Sleep};
use tower_service::Service;

use super::error::Error;
use super::message::Message;
use super::renewal::Renewal;
use super::replay::ReplayBody;
use super::settings::{Held, Settings};
use crate::Sent;
use crate::client::{Leftover, StatusFailure, poll_begin, poll_fresh};

pin_project! {
    /// A request that is retried: the future of [`Retry`](super::Retry). Nothing of it is boxed, but fresh credentials.
    /// Cancel-safe.
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
        call: PollRetry<T, Held>,
        message: Message<B>,
        // The attempt that is being made, from the moment that it may begin.
        attempt: Option<Attempt>,
        // The service has been asked before the first.
        is_ready: bool,
        leftover: Option<Leftover<R, T::Sleeping>>,
        renewal: Option<Box<Renewal<R>>>,
        last: Option<S::Error>,
        #[pin]
        calling: Option<S::Future>,
    }
}

impl<S, T, B, R> ResponseFuture<S, T, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
    T: Sleep + Clone,
    B: Body<Data = Bytes> + Unpin,
{
    pub(super) fn new(service: S, request: Request<B>, settings: &Arc<Settings>, timer: T) -> Self {
        let message = Message::new(request, settings);
        let held = Held(Arc::clone(settings));
        Self {
            service,
            call: PollRetry::from_retrier(held, timer.clone(), message.deadline(&timer)).untimed(),
            timer,
            message,
            attempt: None,
            is_ready: true,
            leftover: None,
            renewal: None,
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
                    let outcome = this.message.failed(Outcome::TRANSIENT, Sent::Perhaps, this.call.retrier());
                    if this.call.failed::<StatusFailure>(outcome, None).is_some() {
                        return Poll::Ready(Err(Error::Refused(Rejected::TimedOut)));
                    }
                    continue;
                };
                // Whatever the attempt holds is let go before the sleep, and before the caller goes on.
                this.calling.set(None);
                *this.attempt = None;
                match end {
                    Ok(answer) => {
                        let Some((outcome, failure)) = this.message.answered(&answer, this.call.retrier()) else {
                            this.call.succeeded();
                            return Poll::Ready(Ok(answer));
                        };
                        if let Some(fresh) = this.message.renewal(failure, this.call.retrier()) {
                            *this.renewal = Some(Box::new(Renewal { fresh, answer, failure }));
                        } else {
                            if this.call.failed(outcome, Some(&failure)).is_some() {
                                return Poll::Ready(Ok(answer));
                            }
                            *this.leftover = Leftover::of(answer.into_body(), this.timer);
                        }
                    }
                    Err(error) => {
                        let sent = this.call.retrier().how_far(&error);
                        let outcome =
                            if sent == Sent::Unprocessed { Outcome::NotProcessed } else { this.call.outcome(&error) };
                        let outcome = this.message.failed(outcome, sent, this.call.retrier());
                        if this.call.failed(outcome, Some(&error)).is_some() {
                            return Poll::Ready(Err(Error::Service(error)));
                        }
                        *this.last = Some(error);
                    }
                }
            }
            if let Some(renewal) = this.renewal {
                let fresh = ready!(poll_fresh(this.call, &mut renewal.fresh, cx));
                let Some(Renewal { answer, failure, .. }) = this.renewal.take().map(|renewal| *renewal) else {
                    return Poll::Pending;
                };
                let outcome = this.message.renewed(fresh, this.call.retrier());
                if this.call.failed(outcome, Some(&failure)).is_some() {
                    return Poll::Ready(Ok(answer));
                }
                *this.leftover = Leftover::of(answer.into_body(), this.timer);
            }
            if this.attempt.is_none() {
                match ready!(poll_begin(this.call, this.leftover, cx)) {
                    Ok(attempt) => *this.attempt = Some(attempt),
                    Err(open) => {
                        let refused = Error::Refused(Rejected::BreakerOpen(open));
                        return Poll::Ready(Err(this.last.take().map_or(refused, Error::Service)));
                    }
                }
            }
            // There is none after the end.
            let Some(attempt) = *this.attempt else { return Poll::Pending };
            if !core::mem::take(this.is_ready) {
                match this.call.prepare(|| this.service.poll_ready(cx)) {
                    Poll::Ready(Ok(())) => {}
                    // A service that says so is of no more use.
                    Poll::Ready(Err(error)) => {
                        let _ = this.call.failed(Outcome::UnsafeToRetry(FailureKind::LocalExhaustion), Some(&error));
                        *this.attempt = None;
                        return Poll::Ready(Err(Error::Service(error)));
                    }
                    Poll::Pending => {
                        ready!(this.call.poll_limit(cx));
                        // Nothing was sent; it was our own side that had no room.
                        *this.attempt = None;
                        let outcome = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None };
                        if this.call.failed::<StatusFailure>(outcome, None).is_some() {
                            return Poll::Ready(Err(Error::Refused(Rejected::TimedOut)));
                        }
                        continue;
                    }
                }
            }
            let request = this.message.make(attempt, this.call.retrier(), cx);
            let calling = this.call.attempt(|| this.service.call(request));
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
