use core::future::poll_fn;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use http::Extensions;
use reqwest::{Body, Request, Response};
use reqwest_middleware::{Error, Next, Result};
use stagger::time::{Sleep, Tokio};
use stagger::{Attempt, FailureKind, Outcome, PollRetry, Rejected, Retrier, StopReason, classify};

use super::error::{self, Redirects};
use crate::client::{
    AttemptSpan, BodyDrain, BodyReplay, GuardKey, Hops, RequestTracker, RetrySettings, StatusFailure, deadline,
    insert_attempt, is_success, outcome_of_error, poll_begin, poll_refresh,
};
use crate::request::RequestProgress;

/// The state of one call: a request and its attempts.
pub(super) struct RetryCall<'s> {
    settings: &'s RetrySettings<Request>,
    redirects: &'s Redirects,
    call: PollRetry<Tokio, &'s Retrier>,
    request: RequestTracker<Request>,
    span: AttemptSpan,
    drain: Option<BodyDrain<Body, <Tokio as Sleep>::Sleeping>>,
    last: Option<Error>,
}

/// An attempt in flight.
pub(super) type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response>> + Send + 'a>>;

impl<'s> RetryCall<'s> {
    pub(super) fn new(
        request: Request,
        extensions: &Extensions,
        settings: &'s RetrySettings<Request>,
        redirects: &'s Redirects,
    ) -> Self {
        let deadline = deadline(extensions, request.headers(), &Tokio);
        Self {
            settings,
            redirects,
            call: PollRetry::from_retrier(&settings.retrier, Tokio, deadline)
                .untimed()
                .late_target(|| key(settings, &request)),
            request: RequestTracker::new(request, settings),
            span: AttemptSpan::default(),
            drain: None,
            last: None,
        }
    }

    /// Runs the call. A boxed block and not an `async fn`, so that the future stores the request only once.
    pub(super) fn run<'f>(mut self, extensions: &'f mut Extensions, next: Next<'f>) -> Sending<'f>
    where
        's: 'f,
    {
        Box::pin(async move {
            loop {
                let attempt = match poll_fn(|cx| self.poll_begin(cx)).await {
                    Ok(attempt) => attempt,
                    // The caller learns more from the last error than from the guard that rejected the retry after it.
                    Err(rejected) => match self.last.take() {
                        Some(error) => return Err(error),
                        None => return Err(Error::middleware(rejected)),
                    },
                };
                insert_attempt(extensions, attempt);
                let request = self.next_attempt(attempt);
                let followed = self.redirects.followed();
                self.span.begin(request.method(), request.url().host_str(), attempt);
                let mut sending = self.call.attempt(|| self.span.enter(|| next.clone().run(request, extensions)));
                let end = poll_fn(|cx| self.poll_end(&mut sending, cx)).await;
                // Releases what the attempt holds before anything else happens.
                drop(sending);
                let hops = self.redirects.hops_since(followed);
                match &end {
                    Some(Ok(response)) => self.span.answered(response.status()),
                    Some(Err(_)) => self.span.failed(),
                    None => self.span.timed_out(),
                }
                let last = match end {
                    Some(Ok(response)) => {
                        let Some((outcome, failure)) = self.on_response(&response, hops) else { return Ok(response) };
                        let response = Box::new(response);
                        let outcome = match self.request.refresh(hops, self.settings) {
                            Some(mut credentials) => {
                                let fresh = poll_fn(|cx| poll_refresh(&mut self.call, &mut credentials, cx)).await;
                                self.request.on_refreshed(fresh, self.settings)
                            }
                            None => outcome,
                        };
                        self.on_decided(outcome, failure, *response).map(Ok)
                    }
                    Some(Err(error)) => self.on_error(error, hops).map(Err),
                    None => self.on_timeout().map(Err),
                };
                if let Some(last) = last {
                    return last;
                }
            }
        })
    }

    /// Returns the request for `attempt`.
    fn next_attempt(&mut self, attempt: Attempt) -> Request {
        let head = &mut self.request.head;
        let mut request = head.try_clone().unwrap_or_else(|| {
            // The body is a stream, and goes with the first attempt. The head stays here, to classify responses with.
            self.request.body = BodyReplay::Impossible;
            let mut head_only = Request::new(head.method().clone(), head.url().clone());
            head_only.headers_mut().clone_from(head.headers());
            mem::replace(head, head_only)
        });
        self.request.insert_headers(request.headers_mut(), attempt, self.settings);
        request
    }

    fn poll_begin(&mut self, cx: &mut Context<'_>) -> Poll<core::result::Result<Attempt, Rejected>> {
        poll_begin(&mut self.call, &mut self.drain, cx)
    }

    /// Polls the attempt. Resolves to `None` if the attempt times out.
    fn poll_end(&mut self, sending: &mut Sending<'_>, cx: &mut Context<'_>) -> Poll<Option<Result<Response>>> {
        match self.call.attempt(|| self.span.enter(|| sending.as_mut().poll(cx))) {
            Poll::Ready(end) => Poll::Ready(Some(end)),
            Poll::Pending => self.call.poll_limit(cx).map(|()| None),
        }
    }

    /// Classifies a response. Returns `None` for a success, which ends the call.
    fn on_response(&mut self, response: &Response, hops: Hops) -> Option<(Outcome, StatusFailure)> {
        let (status, headers) = (response.status(), response.headers());
        if is_success(status, headers) {
            self.call.succeeded_at(|| key(self.settings, &self.request.head));
            return None;
        }
        let (outcome, failure) = self.request.on_response(status, headers, hops, self.settings);
        if error::is_from_origin(response, self.request.head.url()) {
            return Some((outcome, failure));
        }
        self.request.forget_reservation();
        Some((without_throttling(outcome), failure))
    }

    /// Decides about a failed response. Returns it if it is the last, and otherwise drains it.
    fn on_decided(&mut self, outcome: Outcome, failure: StatusFailure, response: Response) -> Option<Response> {
        if self.call.failed_at(|| key(self.settings, &self.request.head), outcome, Some(&failure)).is_some() {
            return Some(response);
        }
        self.drain = BodyDrain::new(response.into(), &Tokio);
        None
    }

    /// Decides about an error. Returns it if it is the last.
    fn on_error(&mut self, mut error: Error, hops: Hops) -> Option<Error> {
        if self.stopped(&mut error, hops).is_some() {
            return Some(error);
        }
        self.last = Some(error);
        None
    }

    /// Decides about an error. The rules see all of it, and listeners see no secrets of its URL.
    fn stopped(&mut self, error: &mut Error, hops: Hops) -> Option<StopReason> {
        let outcome = self.error_outcome(error, hops);
        let url = reqwest_error(error).and_then(error::hide_url_secrets);
        let stop = match &*error {
            Error::Reqwest(error) => {
                self.call.failed_at(|| key(self.settings, &self.request.head), outcome, Some(error))
            }
            Error::Middleware(_) => {
                self.call.failed_at(|| key(self.settings, &self.request.head), outcome, Some(&*error))
            }
        };
        if let Some(error) = reqwest_error(error) {
            error::restore_url(error, url);
        }
        stop
    }

    fn error_outcome(&mut self, error: &Error, hops: Hops) -> Outcome {
        match error {
            Error::Reqwest(error) => {
                let progress = error::request_progress(error, hops);
                let explicit = self.call.explicit_outcome(error);
                self.classify(outcome_of_error(explicit, progress, Some(error), || error::outcome(error)), progress)
            }
            Error::Middleware(inner) => {
                let outcome = if let Some(outcome) = self.call.explicit_outcome(error) {
                    outcome
                } else if let Some(outcome) = self.call.explicit_outcome(inner) {
                    outcome
                } else {
                    classify::chain(inner.as_ref()).unwrap_or(Outcome::TRANSIENT)
                };
                self.classify(outcome, RequestProgress::MaybeProcessed)
            }
        }
    }

    /// Decides about an attempt that timed out and was dropped. Returns the error if no retry follows.
    fn on_timeout(&mut self) -> Option<Error> {
        let outcome = self.classify(Outcome::TRANSIENT, RequestProgress::MaybeProcessed);
        let stop = self.call.failed_at::<StatusFailure, _>(|| key(self.settings, &self.request.head), outcome, None);
        stop.map(|_| Error::middleware(Rejected::TimedOut))
    }

    fn classify(&self, outcome: Outcome, progress: RequestProgress) -> Outcome {
        self.request.on_failure(outcome, progress, self.settings)
    }
}

/// Returns the outcome of a response from another server than the one whose guards are told of it: its hint is for this
/// call alone.
const fn without_throttling(outcome: Outcome) -> Outcome {
    let kind = FailureKind::Transient;
    match outcome {
        Outcome::Failed { kind: FailureKind::Throttled, hint: hint @ Some(_) } => Outcome::Failed { kind, hint },
        Outcome::UnsafeToRetry { kind: FailureKind::Throttled, hint: hint @ Some(_) } => {
            Outcome::UnsafeToRetry { kind, hint }
        }
        _ => outcome,
    }
}

/// Returns the key of the guards of this request.
fn key<'r>(settings: &'r RetrySettings<Request>, head: &'r Request) -> GuardKey<'r, Request> {
    GuardKey { head, by: settings.key.as_ref() }
}

/// Returns reqwest's error, also if middleware has wrapped it.
fn reqwest_error(error: &mut Error) -> Option<&mut reqwest::Error> {
    match error {
        Error::Reqwest(error) => Some(error),
        Error::Middleware(inner) => match inner.is::<Error>() {
            true => reqwest_error(inner.downcast_mut()?),
            false => inner.downcast_mut(),
        },
    }
}
