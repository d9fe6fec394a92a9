use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use http::{Extensions, HeaderMap};
use reqwest::{Body, Request, Response};
use reqwest_middleware::{Error, Result};
use stagger::{
    Attempt, BreakerOpen, Outcome, PollRetry, Rejected, Retrier, StopReason, classify, time::Sleep, time::Tokio,
};

use super::error;
use crate::client::{Kept, Leftover, Progress, Renewing, Settings, StatusFailure, is_success, poll_begin, poll_fresh};
use crate::{Deadline, Sent};

/// One request, from its first attempt to its last.
pub(super) struct Course<'s> {
    settings: &'s Settings<Request>,
    call: PollRetry<Tokio, &'s Retrier>,
    progress: Progress<Request>,
    body: Kept,
    leftover: Option<Leftover<Body, <Tokio as Sleep>::Sleeping>>,
    last: Option<Error>,
}

/// An attempt under way.
pub(super) type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response>> + Send + 'a>>;

impl<'s> Course<'s> {
    pub(super) fn new(request: Request, extensions: &Extensions, settings: &'s Settings<Request>) -> Self {
        let deadline = extensions.get::<Deadline>().map(|deadline| deadline.0);
        Self {
            settings,
            call: PollRetry::from_retrier(&settings.retrier, Tokio, deadline).untimed(),
            progress: Progress::new(request, settings),
            body: Kept::Whole,
            leftover: None,
            last: None,
        }
    }

    pub(super) fn poll_begin(&mut self, cx: &mut Context<'_>) -> Poll<core::result::Result<Attempt, BreakerOpen>> {
        poll_begin(&mut self.call, &mut self.leftover, cx)
    }

    /// The end of a call that the breaker has refused to let go on.
    pub(super) fn refused(&mut self, open: BreakerOpen) -> Error {
        self.last.take().unwrap_or_else(|| Error::middleware(Rejected::BreakerOpen(open)))
    }

    /// For this attempt.
    pub(super) fn make(&mut self, attempt: Attempt) -> Request {
        let head = &mut self.progress.head;
        let mut request = head.try_clone().unwrap_or_else(|| {
            // Its body is a stream, and is sent with the first attempt. What stays here is for being judged.
            self.body = Kept::Lost;
            let mut judged = Request::new(head.method().clone(), head.url().clone());
            judged.headers_mut().clone_from(head.headers());
            mem::replace(head, judged)
        });
        self.progress.announce(request.headers_mut(), attempt, self.settings);
        request
    }

    /// Begins an attempt.
    pub(super) fn send<'a>(&mut self, send: impl FnOnce() -> Sending<'a>) -> Sending<'a> {
        self.call.attempt(send)
    }

    /// Ready with `None` if the attempt takes longer than it may.
    pub(super) fn poll_end(
        &mut self,
        sending: &mut Sending<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Response>>> {
        match self.call.attempt(|| sending.as_mut().poll(cx)) {
            Poll::Ready(end) => Poll::Ready(Some(end)),
            Poll::Pending => self.call.poll_limit(cx).map(|()| None),
        }
    }

    /// What an answer means that is a failure; `None` if it is a success, and the end.
    pub(super) fn answered(&mut self, answer: &Response) -> Option<(Outcome, StatusFailure)> {
        let (status, headers) = (answer.status(), answer.headers());
        if is_success(status, headers) {
            self.call.succeeded();
            return None;
        }
        Some(self.progress.answered(status, headers, self.body, self.settings))
    }

    pub(super) fn renewal(&mut self, failure: StatusFailure) -> Option<Renewing> {
        self.progress.renewal(failure.status, self.body, self.settings)
    }

    pub(super) fn poll_fresh(&mut self, renewing: &mut Renewing, cx: &mut Context<'_>) -> Poll<Option<HeaderMap>> {
        poll_fresh(&mut self.call, renewing, cx)
    }

    pub(super) fn renewed(&mut self, fresh: Option<HeaderMap>) -> Outcome {
        self.progress.renewed(fresh, self.body, self.settings)
    }

    /// Gives the answer back if it is the last.
    pub(super) fn decided(&mut self, outcome: Outcome, failure: StatusFailure, answer: Response) -> Option<Response> {
        if self.call.failed(outcome, Some(&failure)).is_some() {
            return Some(answer);
        }
        self.leftover = Leftover::of(answer.into(), &Tokio);
        None
    }

    /// Gives the error back if it is the last.
    pub(super) fn failed(&mut self, error: Error) -> Option<Error> {
        if self.stopped(&error).is_some() {
            return Some(error);
        }
        self.last = Some(error);
        None
    }

    fn stopped(&mut self, error: &Error) -> Option<StopReason> {
        match error {
            Error::Reqwest(error) => {
                let outcome = self.call.given_outcome(error).unwrap_or_else(|| error::outcome(error));
                let outcome = self.judged(outcome, error::how_far(error));
                self.call.failed(outcome, Some(error))
            }
            Error::Middleware(inner) => {
                let known = self.call.given_outcome(error).or_else(|| classify::chain(inner.as_ref()));
                let outcome = self.judged(known.unwrap_or(Outcome::TRANSIENT), Sent::Perhaps);
                self.call.failed(outcome, Some(error))
            }
        }
    }

    /// The attempt took longer than it may, and is gone. The error, if no other follows.
    pub(super) fn timed_out(&mut self) -> Option<Error> {
        let outcome = self.judged(Outcome::TRANSIENT, Sent::Perhaps);
        let stop = self.call.failed::<StatusFailure>(outcome, None);
        stop.map(|_| Error::middleware(Rejected::TimedOut))
    }

    fn judged(&self, outcome: Outcome, sent: Sent) -> Outcome {
        self.progress.failed(outcome, sent, self.body, self.settings)
    }
}
