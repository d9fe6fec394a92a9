//! A request from one attempt to the next: the headers of its attempts, and what their ends mean for it.

use core::error::Error;
use core::fmt;
#[cfg(feature = "tokio")]
use core::time::Duration;
use std::time::SystemTime;

use http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode};
use stagger::admission::ReservationToken;
use stagger::time::Clock;
#[cfg(feature = "tokio")]
use stagger::time::Tokio;
use stagger::{Attempt, FailureKind, Instant, Outcome, ServerHint, classify};
use uuid::Uuid;

use super::baggage::count_retry;
use super::settings::{CredentialFuture, HeaderMode, RetrySettings};
use crate::header::{IDEMPOTENCY_KEY, RESERVATION_TOKEN, RETRY_ATTEMPT, TIMEOUT_MS};
#[cfg(feature = "hyper")]
use crate::hyper::outcome as by_protocol;
use crate::key;
use crate::request::{Idempotency, RequestProgress};
use crate::status::AnnouncedWaits;
use crate::{grpc, hint, status};

/// The point in time at which the caller of a request gives up, as a request extension.
///
/// In the extensions of an outgoing request it limits the call: no attempt starts at or after the deadline, not even
/// the first, an attempt in flight is cancelled at it, and [`timeout_header`](crate::header::TIMEOUT_MS) propagates the
/// time that is left. The instant is on the clock of the layer or middleware that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// Creates a deadline at `instant`.
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// Creates a deadline `length` from now, on tokio's clock: that of a layer or middleware that was given no other.
    ///
    /// ```
    /// use core::time::Duration;
    /// use http::Request;
    /// use stagger_http::Deadline;
    ///
    /// let request = Request::get("/orders").extension(Deadline::within(Duration::from_secs(2))).body(())?;
    /// # Ok::<(), http::Error>(())
    /// ```
    #[cfg(feature = "tokio")]
    #[must_use]
    pub fn within(length: Duration) -> Self {
        Self(Tokio.now().saturating_add(length))
    }

    /// Returns the point in time.
    #[must_use]
    pub const fn instant(self) -> Instant {
        self.0
    }
}

/// Returns the number of the attempt that a request belongs to, from 1, as found in its extensions. For layers and
/// middleware below one that retries.
///
/// The retrying layer inserts an [`Attempt`] from the second attempt on, and into any attempt with a time limit. A
/// first attempt without a time limit is not marked: allocating the request's extension map would cost three
/// allocations.
///
/// ```
/// use http::Extensions;
/// use stagger_http::attempt_number;
///
/// assert_eq!(attempt_number(&Extensions::new()), 1);
/// ```
#[must_use]
pub fn attempt_number(extensions: &Extensions) -> u32 {
    extensions.get::<Attempt>().map_or(1, |attempt| attempt.number)
}

/// A response that counts as a failure, as listeners receive it from
/// [`Event::error_as`](stagger::observe::Event::error_as).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusFailure {
    status: StatusCode,
    idempotency: Idempotency,
    body: BodyReplay,
}

impl StatusFailure {
    /// Returns the status of the response.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns whether, and why, the request may be sent more than once.
    #[must_use]
    pub const fn idempotency(&self) -> Idempotency {
        self.idempotency
    }

    /// Returns whether the body of the request can be sent again. If it is a stream, exceeds the replay limit or has
    /// failed, the request is not retried whatever its idempotency.
    #[must_use]
    pub const fn is_body_replayable(&self) -> bool {
        matches!(self.body, BodyReplay::Possible)
    }
}

impl fmt::Display for StatusFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server responded {}; ", self.status)?;
        match self.idempotency {
            _ if !self.is_body_replayable() => f.write_str(
                "the request cannot be retried: its body is a stream, exceeds the replay limit or has failed",
            ),
            Idempotency::OnlyIfUnsent => write!(f, "the request is not safe to retry: {}", self.idempotency),
            _ => write!(f, "the request is safe to retry: {}", self.idempotency),
        }
    }
}

impl Error for StatusFailure {}

/// A request without its body: the part that decides about retries and that attempts add headers to.
pub(crate) trait RequestHead: key::Head {
    fn method(&self) -> &Method;
    fn headers_mut(&mut self) -> &mut HeaderMap;
}

#[cfg(any(feature = "tower", test))]
impl RequestHead for http::request::Parts {
    fn method(&self) -> &Method {
        &self.method
    }

    fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }
}

/// Whether the body of a request can be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyReplay {
    /// All of it is available.
    Possible,
    /// It is a stream, exceeds the replay limit or has failed.
    Impossible,
}

/// How many servers an attempt reached: whether the client below may have followed a redirect in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hops {
    /// The attempt ended at the server that the request was sent to.
    One,
    /// Another server may have processed the request, and redirected it to the one that the attempt ended at.
    #[cfg(feature = "reqwest-middleware")]
    Unknown,
}

/// A request and its state from one attempt to the next. It is classified only once an attempt has failed.
#[derive(Debug)]
pub(crate) struct RequestTracker<P> {
    /// The original head, updated with refreshed credentials.
    pub(crate) head: P,
    /// Whether the body can be sent again, as of the latest attempt.
    pub(crate) body: BodyReplay,
    /// The token of the reservation in the last response.
    reservation_token: Option<ReservationToken>,
    /// Whether the last response rejects the credentials.
    is_denied: bool,
    has_refreshed: bool,
}

impl<P: RequestHead> RequestTracker<P> {
    /// Creates the tracker, and adds an `Idempotency-Key` if that is enabled and the request needs one.
    pub(crate) fn new(mut head: P, settings: &RetrySettings<P>) -> Self {
        if settings.idempotency_keys == HeaderMode::Send
            && Idempotency::from_request(head.method(), head.headers()) == Idempotency::OnlyIfUnsent
        {
            // The draft requires a structured-field string, which is quoted.
            if let Ok(key) = HeaderValue::try_from(format!("\"{}\"", Uuid::new_v4())) {
                head.headers_mut().insert(IDEMPOTENCY_KEY, key);
            }
        }
        Self { head, body: BodyReplay::Possible, reservation_token: None, is_denied: false, has_refreshed: false }
    }

    /// Inserts the headers of this attempt. The reservation token is sent with one attempt only.
    pub(crate) fn insert_headers(&mut self, headers: &mut HeaderMap, attempt: Attempt, settings: &RetrySettings<P>) {
        if settings.attempt_header == HeaderMode::Send {
            headers.insert(RETRY_ATTEMPT, HeaderValue::from(attempt.number));
        }
        if settings.depth_in_baggage == HeaderMode::Send && attempt.number > 1 {
            count_retry(headers);
        }
        if let Some(token) = self.reservation_token.take() {
            if let Ok(token) = HeaderValue::try_from(token.to_string()) {
                headers.insert(RESERVATION_TOKEN, token);
            }
        }
        if let (HeaderMode::Send, Some(limit)) = (settings.timeout_header, attempt.time_limit) {
            // Zero would mean that the time is up, although this attempt may still begin.
            let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
            headers.insert(TIMEOUT_MS, HeaderValue::from(millis));
        }
        if is_notable(attempt) && grpc::is_grpc(headers) {
            if attempt.number > 1 {
                headers.insert(grpc::PREVIOUS_ATTEMPTS, HeaderValue::from(attempt.number - 1));
            }
            if let Some(limit) = attempt.time_limit {
                if let Ok(limit) = HeaderValue::try_from(grpc::format_timeout(limit)) {
                    headers.insert(grpc::TIMEOUT, limit);
                }
            }
        }
    }

    /// Classifies a response that is not a [success](is_success), and keeps the token of its reservation. `hops` are
    /// those of the attempt.
    pub(crate) fn on_response(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        hops: Hops,
        settings: &RetrySettings<P>,
    ) -> (Outcome, StatusFailure) {
        let reservation = hint::reservation(headers);
        self.reservation_token = reservation.map(|reservation| reservation.token);
        let failure = StatusFailure { status, idempotency: self.idempotency(settings), body: self.body };
        let rule = |code| match settings.codes {
            Some(codes) => codes.outcome(code),
            None => classify::grpc(code),
        };
        let hint = || hint::server_hint_after(reservation, headers, SystemTime::now);
        let outcome = match by_grpc(headers, rule) {
            Some(outcome) => outcome,
            None if grpc::is_grpc(self.head.headers()) => {
                // A proxy between client and server does not know gRPC, and responds in plain HTTP.
                match rule(grpc::code_from_http_status(status)) {
                    Outcome::Failed { kind, .. } => by_proxy(status, kind, hint()),
                    outcome => outcome,
                }
            }
            None => {
                let hint = hint();
                match settings.announced_waits {
                    AnnouncedWaits::Follow => status::announced_wait(status, headers, hint),
                    AnnouncedWaits::Ignore => None,
                }
                .unwrap_or_else(|| status::response_outcome(status, headers, failure.idempotency, hint))
            }
        };
        self.is_denied = match status {
            StatusCode::UNAUTHORIZED => true,
            // A 403 that is throttled is a rate limit, and says nothing about the credentials.
            StatusCode::FORBIDDEN => !matches!(outcome, Outcome::Failed { kind: FailureKind::Throttled, .. }),
            _ => false,
        };
        // Admission control rejects a request before anything reads it. A 503 or 429 without a reservation may come
        // from anywhere behind.
        let is_rejected = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        let progress = match (reservation, hops) {
            (Some(_), Hops::One) if is_rejected => RequestProgress::NotProcessed,
            _ => RequestProgress::MaybeProcessed,
        };
        (self.restrict(outcome, progress, failure.idempotency), failure)
    }

    /// Forgets the reservation of the last response, which was not from the server that the next attempt is sent to.
    #[cfg(feature = "reqwest-middleware")]
    pub(crate) fn forget_reservation(&mut self) {
        self.reservation_token = None;
    }

    /// Classifies a failure without a response, for this request.
    pub(crate) fn on_failure(
        &self,
        outcome: Outcome,
        progress: RequestProgress,
        settings: &RetrySettings<P>,
    ) -> Outcome {
        self.restrict(outcome, progress, self.idempotency(settings))
    }

    fn idempotency(&self, settings: &RetrySettings<P>) -> Idempotency {
        let by_request = match settings.conditional_writes {
            #[cfg(any(feature = "object-store", feature = "opendal"))]
            super::settings::ConditionalWrites::OnlyIfUnsent
                if crate::storage::is_conditional_write(self.head.method(), self.head.headers()) =>
            {
                Idempotency::OnlyIfUnsent
            }
            _ => Idempotency::from_request(self.head.method(), self.head.headers()),
        };
        match by_request {
            Idempotency::OnlyIfUnsent if settings.is_declared_idempotent(&self.head) => Idempotency::Declared,
            idempotency => idempotency,
        }
    }

    /// Restricts an outcome to what is safe for this request: a failure that must not be retried is unsafe to retry.
    fn restrict(&self, outcome: Outcome, progress: RequestProgress, idempotency: Idempotency) -> Outcome {
        // A body that is spent cannot be sent again, however safe the request is.
        let allows_retry = |progress| self.body == BodyReplay::Possible && idempotency.allows_retry(progress);
        match outcome {
            Outcome::Failed { kind, hint } if !allows_retry(progress) => Outcome::UnsafeToRetry { kind, hint },
            Outcome::NotProcessed if !allows_retry(RequestProgress::NotProcessed) => {
                Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None }
            }
            outcome => outcome,
        }
    }

    /// Starts refreshing the credentials if the last response denies the request, refreshing is configured, and it
    /// has not been done in this call. `hops` are those of the attempt: what another server denies may have been
    /// processed before.
    pub(crate) fn refresh(&mut self, hops: Hops, settings: &RetrySettings<P>) -> Option<CredentialFuture> {
        let refresh = settings.refresh_credentials.as_ref()?;
        if !self.is_denied || self.body == BodyReplay::Impossible || self.has_refreshed {
            return None;
        }
        if hops != Hops::One && !self.idempotency(settings).allows_retry(RequestProgress::MaybeProcessed) {
            return None;
        }
        self.has_refreshed = true;
        Some(refresh(&self.head))
    }

    /// Applies refreshed credentials. The denied request then counts as not processed, and is retried immediately;
    /// without credentials it has failed permanently.
    pub(crate) fn on_refreshed(&mut self, fresh: Option<HeaderMap>, settings: &RetrySettings<P>) -> Outcome {
        let Some(fresh) = fresh else { return Outcome::Permanent };
        // Replaces headers of the same name.
        self.head.headers_mut().extend(fresh);
        self.on_failure(Outcome::NotProcessed, RequestProgress::NotProcessed, settings)
    }
}

/// Returns the deadline of a call: that of the extensions or of `grpc-timeout`, which spans all attempts, whichever is
/// sooner.
pub(crate) fn deadline(extensions: &Extensions, headers: &HeaderMap, clock: &impl Clock) -> Option<Instant> {
    // Read once, before the first attempt: later ones carry what is left of it.
    let deadline = extensions.get::<Deadline>().map(|deadline| deadline.instant());
    let left = if grpc::is_grpc(headers) { grpc::timeout_of(headers) } else { None };
    deadline.into_iter().chain(left.map(|left| clock.now().saturating_add(left))).min()
}

/// Inserts the attempt into the request's extensions, for inner layers.
///
/// A first attempt without a time limit is the default and is not inserted, since the first extension costs a call
/// three allocations.
pub(crate) fn insert_attempt(extensions: &mut Extensions, attempt: Attempt) {
    if is_notable(attempt) || extensions.get::<Attempt>().is_some() {
        extensions.insert(attempt);
    }
}

/// Returns whether the attempt differs from the default: a first attempt without a time limit.
const fn is_notable(attempt: Attempt) -> bool {
    attempt.number > 1 || attempt.time_limit.is_some()
}

/// Returns whether a response is a success, whatever the request.
pub(crate) fn is_success(status: StatusCode, headers: &HeaderMap) -> bool {
    status.as_u16() < 400 && matches!(by_grpc(headers, classify::grpc), None | Some(Outcome::Success))
}

/// Returns the outcome of a gRPC call that a proxy answered: a server that names a time limits every client, as
/// [`status`] says, although for gRPC it is only unavailable.
const fn by_proxy(status: StatusCode, kind: FailureKind, hint: Option<ServerHint>) -> Outcome {
    match (status, hint) {
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, Some(ServerHint::AtLeast(_))) => {
            Outcome::throttled(hint)
        }
        _ => Outcome::Failed { kind, hint },
    }
}

fn by_grpc(headers: &HeaderMap, rule: impl FnOnce(u32) -> Outcome) -> Option<Outcome> {
    if grpc::is_grpc(headers) { grpc::outcome_with(headers, rule) } else { None }
}

/// Returns the outcome of an attempt without a response.
///
/// `explicit` is that of the retrier's rules, which decide except that what was not processed need not wait; `link` is
/// the error, if it can be examined; `built_in` classifies it otherwise.
pub(crate) fn outcome_of_error(
    explicit: Option<Outcome>,
    progress: RequestProgress,
    link: Option<&(dyn Error + 'static)>,
    built_in: impl FnOnce() -> Outcome,
) -> Outcome {
    match explicit {
        Some(Outcome::TRANSIENT) | None => {}
        Some(outcome) => return outcome,
    }
    // What the server itself says about its load.
    if let Some(outcome) = link.and_then(by_protocol) {
        return outcome;
    }
    match explicit {
        _ if progress == RequestProgress::NotProcessed => Outcome::NotProcessed,
        Some(outcome) => outcome,
        None => built_in(),
    }
}

/// No protocol's errors are known.
#[cfg(not(feature = "hyper"))]
const fn by_protocol(_: &(dyn Error + 'static)) -> Option<Outcome> {
    None
}
