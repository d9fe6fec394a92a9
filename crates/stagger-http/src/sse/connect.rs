//! One attempt to open a stream: the request, and what its response means.

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use stagger::admission::ReservationToken;
use stagger::{FailureKind, Outcome};
use tokio::time::timeout;

use super::event::{BoxError, ConnectionError, StreamRejected};
use super::parser::is_valid_id;
use super::transport::{BoxBody, FromOtherOrigin, SendFailure, Transport};
use crate::header::RESERVATION_TOKEN;
use crate::hint::reservation;
use crate::request::{Idempotency, RequestProgress};

/// `last-event-id`: the id of the last event that the client received.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// What a response must be.
const EVENT_STREAM: &str = "text/event-stream";

/// An attempt to open a stream, as the request provider sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectAttempt {
    pub(super) number: u32,
    pub(super) last_event_id: Arc<str>,
    pub(super) auth_rejection: Option<u16>,
    pub(super) reservation: Option<HeldReservation>,
}

/// The token of a reservation, and the server that it is for.
#[derive(Clone, Debug)]
pub(super) struct HeldReservation {
    token: ReservationToken,
    origin: Origin,
}

type Origin = (Option<Scheme>, Option<Authority>);

impl ConnectAttempt {
    /// Returns the number of the attempt, from 1. The count restarts after a healthy stream.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the id of the last event; empty if there is none. The client sends it in `Last-Event-ID` itself.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// Returns the status, 401 or 403, with which the server rejected the credentials, if no stream has been opened
    /// since.
    #[must_use]
    pub const fn auth_rejection(&self) -> Option<u16> {
        self.auth_rejection
    }
}

pub(super) type ProvidedRequest<B> = Pin<Box<dyn Future<Output = Result<Request<B>, BoxError>> + Send>>;
pub(super) type Provider<B> = Arc<dyn Fn(ConnectAttempt) -> ProvidedRequest<B> + Send + Sync>;

/// A future that opens a stream.
pub(super) type Connecting = Pin<Box<dyn Future<Output = Result<Response<BoxBody>, Box<ConnectFailure>>> + Send>>;
/// Begins an attempt.
pub(super) type Connect = Box<dyn Fn(ConnectAttempt) -> Connecting + Send + Sync>;

/// Why an attempt failed.
pub(super) struct ConnectFailure {
    pub(super) cause: ConnectionError,
    /// What it means, if the HTTP client says so.
    pub(super) outcome: Option<Outcome>,
    /// The reservation that the server made.
    pub(super) reservation: Option<HeldReservation>,
}

impl ConnectFailure {
    /// Returns whether the server has certainly not processed the request: admission control rejects it before anything
    /// reads it, and so does a check of credentials.
    const fn was_not_processed(&self) -> bool {
        match &self.cause {
            ConnectionError::Rejected(rejected) => {
                matches!(rejected.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
                    || self.reservation.is_some()
            }
            _ => false,
        }
    }
}

impl From<ConnectionError> for Box<ConnectFailure> {
    fn from(cause: ConnectionError) -> Self {
        Self::new(ConnectFailure { cause, outcome: None, reservation: None })
    }
}

/// Whether a request that is not idempotent is sent again. Chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    IfSafe,
    Always,
}

/// Opens streams, with one request each.
pub(super) struct Connector<B> {
    pub(super) provider: Provider<B>,
    pub(super) transport: Transport<B>,
    pub(super) connect_timeout: Duration,
    pub(super) repeat: Repeat,
    /// Whether the server may have processed a request that is not idempotent.
    pub(super) is_spent: AtomicBool,
}

impl<B: Send + 'static> Connector<B> {
    pub(super) fn into_connect(self) -> Connect {
        let connector = Arc::new(self);
        Box::new(move |attempt| {
            let connector = Arc::clone(&connector);
            Box::pin(async move { connector.connect(attempt).await })
        })
    }

    async fn connect(&self, attempt: ConnectAttempt) -> Result<Response<BoxBody>, Box<ConnectFailure>> {
        match timeout(self.connect_timeout, self.open(attempt)).await {
            Ok(opened) => opened,
            Err(_) => Err(ConnectionError::ConnectTimeout { after: self.connect_timeout }.into()),
        }
    }

    async fn open(&self, mut attempt: ConnectAttempt) -> Result<Response<BoxBody>, Box<ConnectFailure>> {
        let last_event_id = Arc::clone(&attempt.last_event_id);
        let reservation = attempt.reservation.take();
        let mut request = (self.provider)(attempt).await.map_err(provider_failed)?;
        let origin = (request.uri().scheme().cloned(), request.uri().authority().cloned());
        insert_headers(request.headers_mut(), &last_event_id)?;
        match reservation {
            // Only the server that made the reservation may see its token.
            Some(reserved) if reserved.origin == origin => {
                if let Ok(token) = HeaderValue::try_from(reserved.token.to_string()) {
                    request.headers_mut().insert(RESERVATION_TOKEN, token);
                }
            }
            _ => {}
        }
        let idempotency = Idempotency::from_request(request.method(), request.headers());
        let may_repeat = self.repeat == Repeat::Always || idempotency.allows_retry(RequestProgress::MaybeProcessed);
        // Set before the request is sent, since the attempt may be dropped at any time after that.
        if !may_repeat && self.is_spent.swap(true, Ordering::AcqRel) {
            let outcome = Some(Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None });
            let cause = ConnectionError::UnsafeToRetry;
            return Err(Box::new(ConnectFailure { cause, outcome, reservation: None }));
        }
        match self.transport.send(request).await {
            Ok(response) => accepted(response, origin).inspect_err(|failure| {
                if !may_repeat && failure.was_not_processed() {
                    self.is_spent.store(false, Ordering::Release);
                }
            }),
            Err(SendFailure { error, outcome }) => {
                let cause = ConnectionError::Http(Arc::from(error));
                Err(Box::new(ConnectFailure { cause, outcome, reservation: None }))
            }
        }
    }
}

/// Returns the response if it is an event stream.
fn accepted(response: Response<BoxBody>, origin: Origin) -> Result<Response<BoxBody>, Box<ConnectFailure>> {
    if response.status() == StatusCode::OK {
        let content_type = response.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        return match is_event_stream(content_type) {
            true => Ok(response),
            false => Err(ConnectionError::content_type(content_type).into()),
        };
    }
    let reservation = reservation_token(&response).map(|token| HeldReservation { token, origin });
    let (head, _) = response.into_parts();
    let cause = ConnectionError::Rejected(StreamRejected::new(head.status, head.headers));
    Err(Box::new(ConnectFailure { cause, outcome: None, reservation }))
}

/// Adds the headers that every attempt has, unless the provider has set them.
fn insert_headers(headers: &mut HeaderMap, last_event_id: &str) -> Result<(), ConnectionError> {
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static(EVENT_STREAM));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if !last_event_id.is_empty() {
        match HeaderValue::from_bytes(last_event_id.as_bytes()) {
            Ok(id) if is_valid_id(last_event_id) => headers.insert(LAST_EVENT_ID, id),
            _ => return Err(ConnectionError::InvalidRequest("the id of the last event cannot be sent in a header")),
        };
    }
    Ok(())
}

/// Returns the token of the reservation that the server made when it rejected the request.
fn reservation_token(response: &Response<BoxBody>) -> Option<ReservationToken> {
    let rejects = matches!(response.status(), StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
    let is_from_other_origin = response.extensions().get::<FromOtherOrigin>().is_some();
    if !rejects || is_from_other_origin {
        return None;
    }
    Some(reservation(response.headers())?.token)
}

/// An error of the provider that is a [`ConnectionError`] is that.
fn provider_failed(error: BoxError) -> ConnectionError {
    match error.downcast::<ConnectionError>() {
        Ok(error) => *error,
        Err(error) => ConnectionError::Request(Arc::from(error)),
    }
}

/// Returns whether the content type is `text/event-stream`, with any parameters.
fn is_event_stream(content_type: &[u8]) -> bool {
    // The media type without its parameters: WHATWG MIME Sniffing, "essence".
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(EVENT_STREAM.as_bytes())
}
