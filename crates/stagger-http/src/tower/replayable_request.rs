use core::mem;
use core::task::Context;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, request};
use http_body::Body;
use stagger::time::Clock;
use stagger::{Attempt, Instant, Outcome};

use super::replay::ReplayBody;
use super::saved_head::SavedHead;
use super::settings::Settings;
use crate::client::{
    CredentialFuture, Hops, OriginOf, RequestTracker, StatusFailure, deadline, insert_attempt, is_success,
};
use crate::request::progress::RequestProgress;

/// A request that can be sent several times, and the classification of its responses.
pub(super) struct ReplayableRequest<B: Body> {
    request: RequestTracker<request::Parts>,
    /// A copy of the head during the first attempt, which owns the original.
    saved_head: Option<SavedHead>,
    body: ReplayBody<B>,
}

impl<B: Body<Data = Bytes> + Unpin> ReplayableRequest<B> {
    pub(super) fn new(request: Request<B>, settings: &Settings) -> Self {
        let (parts, body) = request.into_parts();
        let request = RequestTracker::new(parts, &settings.common);
        Self { request, saved_head: None, body: ReplayBody::new(body, settings.replay) }
    }

    /// Returns the origin that the request is sent to.
    pub(super) fn origin(&mut self) -> OriginOf<'_> {
        self.restore();
        OriginOf { uri: &self.request.head.uri, headers: &self.request.head.headers }
    }

    /// Returns the key of the quiet period that holds the request.
    pub(super) fn quiet_key(&mut self, settings: &Settings) -> u64 {
        self.restore();
        settings.common.quiet_key(&self.request.head)
    }

    /// Returns what the last response that was not a success says, whether or not the request can be repeated.
    pub(super) const fn answer(&self) -> Outcome {
        self.request.answer
    }

    /// Returns the deadline of the call.
    pub(super) fn deadline(&self, clock: &impl Clock) -> Option<Instant> {
        deadline(&self.request.head.extensions, &self.request.head.headers, clock)
    }

    /// Returns the request for `attempt`.
    pub(super) fn next_attempt(
        &mut self,
        attempt: Attempt,
        settings: &Settings,
        cx: &mut Context<'_>,
    ) -> Request<ReplayBody<B>> {
        self.restore();
        let head = if attempt.number == 1 {
            self.saved_head = Some(SavedHead::new(&self.request.head));
            mem::replace(&mut self.request.head, Request::new(()).into_parts().0)
        } else {
            self.request.head.clone()
        };
        let mut request = Request::from_parts(head, self.body.next_attempt(cx));
        insert_attempt(request.extensions_mut(), attempt);
        self.request.insert_headers(request.headers_mut(), attempt, &settings.common);
        request
    }

    /// Classifies a response. Returns `None` for a success.
    pub(super) fn on_response<R>(
        &mut self,
        response: &Response<R>,
        settings: &Settings,
    ) -> Option<(Outcome, StatusFailure)> {
        let (status, headers) = (response.status(), response.headers());
        if is_success(status, headers) {
            return None;
        }
        self.attempt_ended();
        Some(self.request.on_response(status, headers, Hops::One, &settings.common))
    }

    /// Classifies a failure without a response.
    pub(super) fn on_failure(&mut self, outcome: Outcome, progress: RequestProgress, settings: &Settings) -> Outcome {
        self.attempt_ended();
        self.request.on_failure(outcome, progress, &settings.common)
    }

    /// Starts refreshing the credentials if that may help: see [`RequestTracker::refresh`].
    pub(super) fn refresh(&mut self, failure: StatusFailure, settings: &Settings) -> Option<CredentialFuture> {
        self.request.refresh(failure.status(), Hops::One, &settings.common)
    }

    /// Restores the head after the first attempt.
    fn restore(&mut self) {
        if let Some(saved) = self.saved_head.take() {
            self.request.head = saved.restore();
        }
    }

    /// Prepares the request for the decision about a retry. The rest of the body may be read until the next attempt.
    fn attempt_ended(&mut self) {
        self.restore();
        self.request.body = self.body.replay();
    }

    /// Classifies the denied request after the refresh: see [`RequestTracker::on_refreshed`].
    pub(super) fn on_refreshed(&mut self, fresh: Option<HeaderMap>, settings: &Settings) -> Outcome {
        self.attempt_ended();
        self.request.on_refreshed(fresh, &settings.common)
    }
}
