use core::mem;
use core::task::Context;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, request};
use http_body::Body;
use stagger::{Attempt, Instant, Outcome, time::Clock};

use super::replay::ReplayBody;
use super::settings::Settings;
use super::spare::Spare;
use crate::client::{Progress, Renewing, StatusFailure, is_success, mark};
use crate::{Deadline, Sent, grpc};

/// The request, as often as it is sent, and what is made of its answers.
pub(super) struct Message<B: Body> {
    progress: Progress<request::Parts>,
    /// While the first attempt is under way, which has taken the head along.
    spare: Option<Spare>,
    body: ReplayBody<B>,
}

impl<B: Body<Data = Bytes> + Unpin> Message<B> {
    pub(super) fn new(request: Request<B>, settings: &Settings) -> Self {
        let (parts, body) = request.into_parts();
        let progress = Progress::new(parts, &settings.common);
        Self { progress, spare: None, body: ReplayBody::new(body, settings.replay) }
    }

    /// When its caller has given up. The `grpc-timeout` of a request is that of all its attempts together.
    pub(super) fn deadline(&self, clock: &impl Clock) -> Option<Instant> {
        let head = &self.progress.head;
        let told = head.extensions.get::<Deadline>().map(|deadline| deadline.0);
        let left = if grpc::is_grpc(&head.headers) { grpc::timeout_of(&head.headers) } else { None };
        told.into_iter().chain(left.map(|left| clock.now().saturating_add(left))).min()
    }

    /// For this attempt.
    pub(super) fn make(
        &mut self,
        attempt: Attempt,
        settings: &Settings,
        cx: &mut Context<'_>,
    ) -> Request<ReplayBody<B>> {
        self.restore();
        let head = if attempt.number == 1 {
            self.spare = Some(Spare::of(&self.progress.head));
            mem::replace(&mut self.progress.head, Request::new(()).into_parts().0)
        } else {
            self.progress.head.clone()
        };
        let mut request = Request::from_parts(head, self.body.again(cx));
        mark(request.extensions_mut(), attempt);
        self.progress.announce(request.headers_mut(), attempt, &settings.common);
        request
    }

    /// What an answer means that is a failure.
    pub(super) fn answered<R>(
        &mut self,
        answer: &Response<R>,
        settings: &Settings,
    ) -> Option<(Outcome, StatusFailure)> {
        let (status, headers) = (answer.status(), answer.headers());
        if is_success(status, headers) {
            return None;
        }
        self.restore();
        Some(self.progress.answered(status, headers, self.body.kept(), &settings.common))
    }

    /// What came of an attempt without an answer.
    pub(super) fn failed(&mut self, outcome: Outcome, sent: Sent, settings: &Settings) -> Outcome {
        self.restore();
        self.progress.failed(outcome, sent, self.body.kept(), &settings.common)
    }

    /// Whether fresh credentials may help, and are to be had.
    pub(super) fn renewal(&mut self, failure: StatusFailure, settings: &Settings) -> Option<Renewing> {
        self.progress.renewal(failure.status, self.body.kept(), &settings.common)
    }

    /// The head of the request is wanted again.
    fn restore(&mut self) {
        if let Some(spare) = self.spare.take() {
            self.progress.head = spare.restored();
        }
    }

    /// What an answer means that was denied, when fresh credentials are there, or are not.
    pub(super) fn renewed(&mut self, fresh: Option<HeaderMap>, settings: &Settings) -> Outcome {
        self.progress.renewed(fresh, self.body.kept(), &settings.common)
    }
}
