use core::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, request};
use http_body::Body;
use stagger::{Attempt, Instant, Outcome, Ticket};
use uuid::Uuid;

use super::caller::{ATTEMPT, Deadline, TIMEOUT};
use super::failure::StatusFailure;
use super::judge::Judge;
use super::renewal::Renewal;
use super::replay::ReplayBody;
use super::settings::{Header, Settings};
use crate::{IDEMPOTENCY_KEY, Repeat, Sent, advice, grpc};

/// The request, as often as it is sent, and what is made of its answers.
pub(super) struct Message<B> {
    settings: Arc<Settings>,
    parts: request::Parts,
    body: ReplayBody<B>,
    judge: Judge,
    /// For the appointment that the last answer has given.
    ticket: Option<Ticket>,
    has_renewed: bool,
}

impl<B: Body<Data = Bytes> + Unpin> Message<B> {
    pub(super) fn new(request: Request<B>, settings: &Arc<Settings>) -> Self {
        let (mut parts, body) = request.into_parts();
        if settings.key == Header::Sent && Repeat::of(&parts.method, &parts.headers) == Repeat::IfUnsent {
            // A structured string.
            if let Ok(key) = HeaderValue::try_from(format!("\"{}\"", Uuid::new_v4())) {
                parts.headers.insert(HeaderName::from_static(IDEMPOTENCY_KEY), key);
            }
        }
        let judge = Judge::new(&parts, settings);
        let body = ReplayBody::new(body, settings.replay);
        Self { settings: Arc::clone(settings), parts, body, judge, ticket: None, has_renewed: false }
    }

    /// When its caller has given up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.parts.extensions.get::<Deadline>().map(|deadline| deadline.0)
    }

    /// For this attempt.
    pub(super) fn make(&mut self, attempt: Attempt) -> Request<ReplayBody<B>> {
        let mut request = Request::from_parts(self.parts.clone(), self.body.again());
        request.extensions_mut().insert(attempt);
        let (headers, settings) = (request.headers_mut(), &self.settings);
        if settings.attempt_header == Header::Sent {
            headers.insert(ATTEMPT, HeaderValue::from(attempt.number));
        }
        if let Some(ticket) = self.ticket.take().and_then(|ticket| HeaderValue::try_from(ticket.to_string()).ok()) {
            headers.insert(HeaderName::from_static(advice::TICKET), ticket);
        }
        if let (Header::Sent, Some(limit)) = (settings.timeout_header, attempt.time_limit) {
            headers.insert(TIMEOUT, HeaderValue::from(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)));
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

    /// What an answer means. Its appointment is kept.
    pub(super) fn answered<R>(&mut self, answer: &Response<R>) -> Outcome {
        let outcome = self.judge.answer(answer, &self.body);
        if outcome != Outcome::Success {
            self.ticket = advice::slot(answer.headers()).map(|appointment| appointment.ticket);
        }
        outcome
    }

    /// An answer that is a failure, for listeners.
    pub(super) fn failure(&self, status: StatusCode) -> StatusFailure {
        StatusFailure { status, repeat: self.judge.repeat(&self.body) }
    }

    /// What came of an attempt without an answer.
    pub(super) fn failed(&self, outcome: Outcome, sent: Sent) -> Outcome {
        self.judge.bounded(outcome, sent, &self.body)
    }

    /// How far it has come, that failed with this error.
    pub(super) fn how_far<E: Any>(&self, error: &E) -> Sent {
        self.settings.how_far(error)
    }

    /// Whether fresh credentials may help, and are to be had.
    pub(super) fn renewal<R>(&mut self, answer: Response<R>) -> Result<Renewal<R>, Response<R>> {
        let is_denied = matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        match &self.settings.renew {
            Some(renew) if is_denied && !self.has_renewed => {
                self.has_renewed = true;
                Ok(Renewal { fresh: renew(&self.parts), answer })
            }
            _ => Err(answer),
        }
    }

    /// With fresh credentials, if there are any, a request that was denied is as good as not processed.
    pub(super) fn renewed(&mut self, fresh: Option<HeaderMap>) -> Outcome {
        let Some(fresh) = fresh else { return Outcome::Permanent };
        for name in fresh.keys() {
            self.parts.headers.remove(name);
        }
        self.parts.headers.extend(fresh);
        self.failed(Outcome::Unprocessed, Sent::Unprocessed)
    }
}
