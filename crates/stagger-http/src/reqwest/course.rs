use core::future::poll_fn;
use core::mem;
use core::ops::ControlFlow::{self, Break, Continue};
use core::task::Poll;

use http::Extensions;
use reqwest::{Body, Request, Response};
use reqwest_middleware::{Error, Next, Result};
use stagger::{Attempt, Outcome, PolledCall, Refused, Sleep, Tokio, classify};

use super::error;
use crate::client::{Kept, Leftover, Progress, Settings, StatusFailure, poll_begin};
use crate::{Deadline, Sent};

/// One request, from its first attempt to its last.
pub(super) struct Course<'s> {
    settings: &'s Settings<Request>,
    call: PolledCall<Tokio>,
    progress: Progress<Request>,
    body: Kept,
    leftover: Option<Leftover<Body, <Tokio as Sleep>::Sleeping>>,
    last: Option<Error>,
}

impl<'s> Course<'s> {
    pub(super) fn new(request: Request, extensions: &Extensions, settings: &'s Settings<Request>) -> Self {
        let deadline = extensions.get::<Deadline>().map(|deadline| deadline.0);
        Self {
            settings,
            call: PolledCall::until(&settings.retrier, Tokio, deadline),
            progress: Progress::new(request, settings),
            body: Kept::Whole,
            leftover: None,
            last: None,
        }
    }

    pub(super) async fn run(mut self, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        loop {
            let begun = poll_fn(|cx| poll_begin(&mut self.call, &mut self.leftover, cx)).await;
            let attempt = match begun {
                Ok(attempt) => attempt,
                Err(open) => return Err(self.last.unwrap_or_else(|| refused(Refused::BreakerOpen(open)))),
            };
            extensions.insert(attempt);
            let request = self.make(attempt);
            let end = match self.send(request, extensions, next.clone()).await {
                Some(Ok(answer)) => self.answered(answer).await,
                Some(Err(error)) => self.failed(error),
                None => self.timed_out(),
            };
            if let Break(end) = end {
                return end;
            }
        }
    }

    /// For this attempt.
    fn make(&mut self, attempt: Attempt) -> Request {
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

    /// Makes an attempt, which is dropped before anything else happens. `None` if it takes longer than it may.
    async fn send(
        &mut self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Option<Result<Response>> {
        let mut sending = self.call.attempt(|| next.run(request, extensions));
        poll_fn(|cx| match self.call.attempt(|| sending.as_mut().poll(cx)) {
            Poll::Ready(end) => Poll::Ready(Some(end)),
            Poll::Pending => self.call.poll_limit(cx).map(|()| None),
        })
        .await
    }

    async fn answered(&mut self, answer: Response) -> ControlFlow<Result<Response>> {
        let (status, headers) = (answer.status(), answer.headers());
        let Some((outcome, failure)) = self.progress.answered(status, headers, self.body, self.settings) else {
            self.call.succeeded();
            return Break(Ok(answer));
        };
        let outcome = match self.progress.renewal(status, self.settings) {
            Some(renewing) => self.progress.renewed(renewing.await, self.body, self.settings),
            None => outcome,
        };
        if self.call.failed(outcome, Some(&failure)).is_some() {
            return Break(Ok(answer));
        }
        self.leftover = Leftover::of(answer.into(), &Tokio);
        Continue(())
    }

    fn failed(&mut self, error: Error) -> ControlFlow<Result<Response>> {
        let stop = match &error {
            Error::Reqwest(error) => {
                let outcome = self.call.given_outcome(error).unwrap_or_else(|| error::outcome(error));
                let outcome = self.judged(outcome, error::how_far(error));
                self.call.failed(outcome, Some(error))
            }
            Error::Middleware(inner) => {
                let known = self.call.given_outcome(&error).or_else(|| classify::chain(inner.as_ref()));
                let outcome = self.judged(known.unwrap_or(Outcome::TRANSIENT), Sent::Perhaps);
                self.call.failed(outcome, Some(&error))
            }
        };
        if stop.is_some() {
            return Break(Err(error));
        }
        self.last = Some(error);
        Continue(())
    }

    fn timed_out(&mut self) -> ControlFlow<Result<Response>> {
        let outcome = self.judged(Outcome::TRANSIENT, Sent::Perhaps);
        match self.call.failed::<StatusFailure>(outcome, None) {
            Some(_) => Break(Err(refused(Refused::TimedOut))),
            None => Continue(()),
        }
    }

    fn judged(&self, outcome: Outcome, sent: Sent) -> Outcome {
        self.progress.failed(outcome, sent, self.body, self.settings)
    }
}

fn refused(why: Refused) -> Error {
    Error::middleware(why)
}
