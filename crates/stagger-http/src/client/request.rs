use std::time::SystemTime;

use http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, request};
use stagger::{Attempt, Kind, Outcome, Ticket, classify};
use uuid::Uuid;

use super::failure::StatusFailure;
use super::settings::{CredentialFuture, HeaderMode, Settings};
use crate::grpc::Codes;
use crate::header::{IDEMPOTENCY_KEY, RESERVATION_TOKEN, RETRY_ATTEMPT, TIMEOUT_MS};
use crate::{Idempotency, RequestProgress, grpc, hint, status};

/// A request without its body.
pub(crate) trait RequestHead {
    fn method(&self) -> &Method;
    fn headers(&self) -> &HeaderMap;
    fn headers_mut(&mut self) -> &mut HeaderMap;
}

impl RequestHead for request::Parts {
    fn method(&self) -> &Method {
        &self.method
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }
}

/// A request, and what is remembered of it from one attempt to the next. It is judged when something has failed, not before.
#[derive(Debug)]
pub(crate) struct RequestTracker<P> {
    /// As it was made, with fresh credentials if there were any.
    pub(crate) head: P,
    /// For the appointment that the last answer has given.
    ticket: Option<Ticket>,
    has_refreshed: bool,
}

impl<P: RequestHead> RequestTracker<P> {
    /// With a key, if that is wanted and it needs one: the same on every attempt.
    pub(crate) fn new(mut head: P, settings: &Settings<P>) -> Self {
        if settings.idempotency_keys == HeaderMode::Send
            && Idempotency::from_request(head.method(), head.headers()) == Idempotency::OnlyIfUnsent
        {
            // A structured string.
            if let Ok(key) = HeaderValue::try_from(format!("\"{}\"", Uuid::new_v4())) {
                head.headers_mut().insert(IDEMPOTENCY_KEY, key);
            }
        }
        Self { head, ticket: None, has_refreshed: false }
    }

    /// Adds to a request what this attempt tells the server.
    pub(crate) fn insert_headers(&mut self, headers: &mut HeaderMap, attempt: Attempt, settings: &Settings<P>) {
        if settings.attempt_header == HeaderMode::Send {
            headers.insert(RETRY_ATTEMPT, HeaderValue::from(attempt.number));
        }
        if let Some(ticket) = self.ticket.take().and_then(|ticket| HeaderValue::try_from(ticket.to_string()).ok()) {
            headers.insert(RESERVATION_TOKEN, ticket);
        }
        if let (HeaderMode::Send, Some(limit)) = (settings.timeout_header, attempt.time_limit) {
            headers.insert(TIMEOUT_MS, HeaderValue::from(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)));
        }
        if is_notable(attempt) && grpc::is_grpc(headers) {
            if attempt.number > 1 {
                headers.insert(grpc::PREVIOUS_ATTEMPTS, HeaderValue::from(attempt.number - 1));
            }
            if let Some(limit) =
                attempt.time_limit.and_then(|limit| HeaderValue::try_from(grpc::format_timeout(limit)).ok())
            {
                headers.insert(grpc::TIMEOUT, limit);
            }
        }
    }

    /// What an answer means that is no [success](is_success). Its appointment is kept.
    pub(crate) fn on_response(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        body: BodyReplay,
        settings: &Settings<P>,
    ) -> (Outcome, StatusFailure) {
        self.ticket = hint::reservation(headers).map(|appointment| appointment.ticket);
        let classifier = ResponseClassifier::new(&self.head, body, settings);
        (classifier.response(status, headers), StatusFailure { status, idempotency: classifier.idempotency, body })
    }

    /// What a failure without an answer means for this request.
    pub(crate) fn on_failure(
        &self,
        outcome: Outcome,
        progress: RequestProgress,
        body: BodyReplay,
        settings: &Settings<P>,
    ) -> Outcome {
        ResponseClassifier::new(&self.head, body, settings).bounded(outcome, progress)
    }

    /// Whether fresh credentials may help, and are to be had.
    pub(crate) fn refresh(
        &mut self,
        status: StatusCode,
        body: BodyReplay,
        settings: &Settings<P>,
    ) -> Option<CredentialFuture> {
        let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let may_help = is_denied && body == BodyReplay::Possible && !self.has_refreshed;
        let renew = settings.refresh_credentials.as_ref().filter(|_| may_help)?;
        self.has_refreshed = true;
        Some(renew(&self.head))
    }

    /// With fresh credentials, if there are any, a request that was denied is as good as not processed.
    pub(crate) fn on_refreshed(
        &mut self,
        fresh: Option<HeaderMap>,
        body: BodyReplay,
        settings: &Settings<P>,
    ) -> Outcome {
        let Some(fresh) = fresh else { return Outcome::Permanent };
        // In place of those of the same names.
        self.head.headers_mut().extend(fresh);
        self.on_failure(Outcome::Unprocessed, RequestProgress::NotProcessed, body, settings)
    }
}

/// Tells the layers further in which attempt it is. Of a first one without a limit there is nothing to be told, and a
/// request without extensions stays one: the first of them would cost every call three allocations.
pub(crate) fn insert_attempt(extensions: &mut Extensions, attempt: Attempt) {
    if is_notable(attempt) || extensions.get::<Attempt>().is_some() {
        extensions.insert(attempt);
    }
}

/// Whether it is another than what everybody assumes: a first one, without a limit of time.
const fn is_notable(attempt: Attempt) -> bool {
    attempt.number > 1 || attempt.time_limit.is_some()
}

/// Whether the body of a request can be sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyReplay {
    /// All of it.
    Possible,
    /// It was longer than what is kept, or a stream, or it failed.
    Impossible,
}

/// What is known of a request that bears on whether it is sent again.
#[derive(Clone, Copy, Debug)]
struct ResponseClassifier {
    idempotency: Idempotency,
    body: BodyReplay,
    speaks_grpc: bool,
    codes: Option<Codes>,
}

impl ResponseClassifier {
    fn new<P: RequestHead>(head: &P, body: BodyReplay, settings: &Settings<P>) -> Self {
        let idempotency = match Idempotency::from_request(head.method(), head.headers()) {
            Idempotency::OnlyIfUnsent if settings.is_declared_idempotent(head) => Idempotency::Declared,
            idempotency => idempotency,
        };
        Self { idempotency, body, speaks_grpc: grpc::is_grpc(head.headers()), codes: settings.codes }
    }

    /// What an answer means that is not a success.
    fn response(self, status: StatusCode, headers: &HeaderMap) -> Outcome {
        let rule = |code| self.codes.map_or_else(|| classify::grpc(code), |codes| codes.outcome(code));
        let outcome = by_grpc(headers, rule).unwrap_or_else(|| {
            let hint = hint::server_hint(headers, SystemTime::now);
            if !self.speaks_grpc {
                return status::outcome(status, self.idempotency, hint);
            }
            // A proxy's answer to what it does not understand.
            match rule(grpc::code_from_http_status(status)) {
                Outcome::Failed { kind, .. } => Outcome::Failed { kind, hint },
                outcome => outcome,
            }
        });
        self.bounded(outcome, RequestProgress::MaybeProcessed)
    }

    /// What a failure means for this request.
    const fn bounded(self, outcome: Outcome, progress: RequestProgress) -> Outcome {
        match outcome {
            Outcome::Failed { kind, .. } if !self.allows_retry(progress) => Outcome::Unrepeatable(kind),
            Outcome::Unprocessed if !self.allows_retry(RequestProgress::NotProcessed) => {
                Outcome::Unrepeatable(Kind::Transient)
            }
            outcome => outcome,
        }
    }

    /// Returns whether it may be sent again, and can.
    const fn allows_retry(self, progress: RequestProgress) -> bool {
        matches!(self.body, BodyReplay::Possible) && self.idempotency.allows_retry(progress)
    }
}

/// Whether an answer is a success, whatever the request was.
pub(crate) fn is_success(status: StatusCode, headers: &HeaderMap) -> bool {
    status.as_u16() < 400 && by_grpc(headers, classify::grpc).is_none_or(|outcome| outcome == Outcome::Success)
}

fn by_grpc(headers: &HeaderMap, rule: impl FnOnce(u32) -> Outcome) -> Option<Outcome> {
    grpc::outcome_with(headers, rule).filter(|_| grpc::is_grpc(headers))
}
