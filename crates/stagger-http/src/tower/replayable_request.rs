use core::mem;
use core::task::Context;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, request};
use http_body::Body;
use stagger::{Attempt, Clock, Instant, Outcome};

use super::replay::ReplayBody;
use super::saved_head::SavedHead;
use super::settings::Settings;
use crate::client::{CredentialFuture, RequestTracker, StatusFailure, insert_attempt, is_success};
use crate::{Deadline, RequestProgress, grpc};

/// The request, as often as it is sent, and what is made of its answers.
pub(super) struct ReplayableRequest<B: Body> {
    request: RequestTracker<request::Parts>,
    /// While the first attempt is under way, which has taken the head along.
    saved_head: Option<SavedHead>,
    body: ReplayBody<B>,
}

impl<B: Body<Data = Bytes> + Unpin> ReplayableRequest<B> {
    pub(super) fn new(request: Request<B>, settings: &Settings) -> Self {
        let (parts, body) = request.into_parts();
        let request = RequestTracker::new(parts, &settings.common);
        Self { request, saved_head: None, body: ReplayBody::new(body, settings.replay) }
    }

    /// When its caller has given up. The `grpc-timeout` of a request is that of all its attempts together.
    pub(super) fn deadline(&self, clock: &impl Clock) -> Option<Instant> {
        let head = &self.request.head;
        let told = head.extensions.get::<Deadline>().map(|deadline| deadline.instant());
        let left = if grpc::is_grpc(&head.headers) { grpc::timeout_of(&head.headers) } else { None };
        told.into_iter().chain(left.map(|left| clock.now().saturating_add(left))).min()
    }

    /// For this attempt.
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
        let mut request = Request::from_parts(head, self.body.again(cx));
        insert_attempt(request.extensions_mut(), attempt);
        self.request.insert_headers(request.headers_mut(), attempt, &settings.common);
        request
    }

    /// What an answer means that is a failure.
    pub(super) fn on_response<R>(
        &mut self,
        answer: &Response<R>,
        settings: &Settings,
    ) -> Option<(Outcome, StatusFailure)> {
        let (status, headers) = (answer.status(), answer.headers());
        if is_success(status, headers) {
            return None;
        }
        self.restore();
        Some(self.request.on_response(status, headers, self.body.replay(), &settings.common))
    }

    /// What came of an attempt without an answer.
    pub(super) fn on_failure(&mut self, outcome: Outcome, progress: RequestProgress, settings: &Settings) -> Outcome {
        self.restore();
        self.request.on_failure(outcome, progress, self.body.replay(), &settings.common)
    }

    /// Whether fresh credentials may help, and are to be had.
    pub(super) fn refresh(&mut self, failure: StatusFailure, settings: &Settings) -> Option<CredentialFuture> {
        self.request.refresh(failure.status(), self.body.replay(), &settings.common)
    }

    /// The head of the request is wanted again.
    fn restore(&mut self) {
        if let Some(saved) = self.saved_head.take() {
            self.request.head = saved.restore();
        }
    }

    /// What an answer means that was denied, when fresh credentials are there, or are not.
    pub(super) fn on_refreshed(&mut self, fresh: Option<HeaderMap>, settings: &Settings) -> Outcome {
        self.request.on_refreshed(fresh, self.body.replay(), &settings.common)
    }
}
