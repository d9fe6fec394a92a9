use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, request};
use stagger::{Attempt, Outcome, admission::ReservationToken};
use uuid::Uuid;

use super::failure::StatusFailure;
use super::judge::{Judge, Kept};
use super::settings::{Header, Renewing, Settings};
use crate::{ATTEMPT, IDEMPOTENCY_KEY, Repeat, Sent, TIMEOUT, advice, grpc};

/// A request without its body.
pub(crate) trait Head {
    fn method(&self) -> &Method;
    fn headers(&self) -> &HeaderMap;
    fn headers_mut(&mut self) -> &mut HeaderMap;
}

impl Head for request::Parts {
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
pub(crate) struct Progress<P> {
    /// As it was made, with fresh credentials if there were any.
    pub(crate) head: P,
    /// For the appointment that the last answer has given.
    ticket: Option<ReservationToken>,
    has_renewed: bool,
}

impl<P: Head> Progress<P> {
    /// With a key, if that is wanted and it needs one: the same on every attempt.
    pub(crate) fn new(mut head: P, settings: &Settings<P>) -> Self {
        if settings.key == Header::Sent && Repeat::of(head.method(), head.headers()) == Repeat::IfUnsent {
            // A structured string.
            if let Ok(key) = HeaderValue::try_from(format!("\"{}\"", Uuid::new_v4())) {
                head.headers_mut().insert(HeaderName::from_static(IDEMPOTENCY_KEY), key);
            }
        }
        Self { head, ticket: None, has_renewed: false }
    }

    /// Adds to a request what this attempt tells the server.
    pub(crate) fn announce(&mut self, headers: &mut HeaderMap, attempt: Attempt, settings: &Settings<P>) {
        if settings.attempt_header == Header::Sent {
            headers.insert(ATTEMPT, HeaderValue::from(attempt.number));
        }
        if let Some(ticket) = self.ticket.take().and_then(|ticket| HeaderValue::try_from(ticket.to_string()).ok()) {
            headers.insert(HeaderName::from_static(advice::TICKET), ticket);
        }
        if let (Header::Sent, Some(limit)) = (settings.timeout_header, attempt.time_limit) {
            headers.insert(TIMEOUT, HeaderValue::from(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)));
        }
        if has_news(attempt) && grpc::is_grpc(headers) {
            if attempt.number > 1 {
                headers.insert(grpc::PREVIOUS_ATTEMPTS, HeaderValue::from(attempt.number - 1));
            }
            if let Some(limit) = attempt.time_limit.and_then(|limit| HeaderValue::try_from(grpc::timeout(limit)).ok()) {
                headers.insert(grpc::TIMEOUT, limit);
            }
        }
    }

    /// What an answer means that is no [success](super::judge::is_success). Its appointment is kept.
    pub(crate) fn answered(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        body: Kept,
        settings: &Settings<P>,
    ) -> (Outcome, StatusFailure) {
        self.ticket = advice::slot(headers).map(|appointment| appointment.token);
        let judge = Judge::new(&self.head, body, settings);
        (judge.answer(status, headers), StatusFailure { status, repeat: judge.repeat() })
    }

    /// What a failure without an answer means for this request.
    pub(crate) fn failed(&self, outcome: Outcome, sent: Sent, body: Kept, settings: &Settings<P>) -> Outcome {
        Judge::new(&self.head, body, settings).bounded(outcome, sent)
    }

    /// Whether fresh credentials may help, and are to be had.
    pub(crate) fn renewal(&mut self, status: StatusCode, body: Kept, settings: &Settings<P>) -> Option<Renewing> {
        let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let may_help = is_denied && body == Kept::Whole && !self.has_renewed;
        let renew = settings.renew.as_ref().filter(|_| may_help)?;
        self.has_renewed = true;
        Some(renew(&self.head))
    }

    /// With fresh credentials, if there are any, a request that was denied is as good as not processed.
    pub(crate) fn renewed(&mut self, fresh: Option<HeaderMap>, body: Kept, settings: &Settings<P>) -> Outcome {
        let Some(fresh) = fresh else { return Outcome::Permanent };
        // In place of those of the same names.
        self.head.headers_mut().extend(fresh);
        self.failed(Outcome::NotProcessed, Sent::Unprocessed, body, settings)
    }
}

/// Tells the layers further in which attempt it is. Of a first one without a limit there is nothing to be told, and a
/// request without extensions stays one: the first of them would cost every call three allocations.
pub(crate) fn mark(extensions: &mut Extensions, attempt: Attempt) {
    if has_news(attempt) || extensions.get::<Attempt>().is_some() {
        extensions.insert(attempt);
    }
}

/// Whether it is another than what everybody assumes: a first one, without a limit of time.
const fn has_news(attempt: Attempt) -> bool {
    attempt.number > 1 || attempt.time_limit.is_some()
}
