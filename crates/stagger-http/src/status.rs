//! Classifies HTTP status codes for retrying.
//!
//! | status | meaning |
//! |---|---|
//! | 1xx, 2xx, 3xx | success |
//! | 408 request timeout, 425 too early | transient |
//! | 429 too many requests | throttled |
//! | 503 service unavailable | throttled with a hint when to return (such as `Retry-After`), transient without |
//! | 500, 502, 504, and every 5xx not listed here | transient |
//! | 501, 505, 506, 507, 508, 510, 511 | permanent: a retry would get the same answer |
//! | 409 conflict | transient with an `Idempotency-Key`: the first request with that key is still in progress |
//! | every other 4xx | permanent |
//!
//! 401 and 403 are permanent here. A client that can refresh its credentials retries once with the new ones.

use http::{HeaderMap, StatusCode};
use stagger::{FailureKind, Outcome, ServerHint};

use crate::hint::should_retry;
use crate::request::Idempotency;

/// Classifies a status by the [table](self).
///
/// `idempotency` is that of the request. `hint` is the [server hint](crate::hint) of the response; the outcome of a
/// failure carries it on.
///
/// ```
/// use http::StatusCode;
/// use stagger::Outcome;
/// use stagger_http::Idempotency;
/// use stagger_http::status::outcome;
///
/// assert_eq!(outcome(StatusCode::BAD_GATEWAY, Idempotency::ByMethod, None), Outcome::TRANSIENT);
/// assert_eq!(outcome(StatusCode::NOT_IMPLEMENTED, Idempotency::ByMethod, None), Outcome::Permanent);
/// ```
#[must_use]
pub fn outcome(status: StatusCode, idempotency: Idempotency, hint: Option<ServerHint>) -> Outcome {
    let failed = |kind| Outcome::Failed { kind, hint };
    match (status.as_u16(), idempotency) {
        (..400, _) => Outcome::Success,
        (429, _) => failed(FailureKind::Throttled),
        // A server that names a time is overloaded or in maintenance, and means every client: RFC 9110 §15.6.4.
        (503, _) if hint.is_some_and(|hint| hint != ServerHint::DoNotRetry) => failed(FailureKind::Throttled),
        (408 | 425, _) | (409, Idempotency::ByKey) => failed(FailureKind::Transient),
        (501 | 505..=508 | 510 | 511, _) | (400..500 | 600.., _) => Outcome::Permanent,
        (500..600, _) => failed(FailureKind::Transient),
    }
}

/// Classifies a response: its status by the [table](self), and what the server says about a retry.
///
/// A status that is otherwise permanent is transient if the server sends [`x-should-retry: true`](should_retry): the
/// server knows better. Whether a retry is safe is another question, which [`Idempotency::allows_retry`] answers.
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use stagger::Outcome;
/// use stagger_http::{Idempotency, status};
///
/// let headers = HeaderMap::from_iter([("x-should-retry".parse()?, "true".parse()?)]);
/// let outcome = status::response_outcome(StatusCode::BAD_REQUEST, &headers, Idempotency::ByMethod, None);
/// assert_eq!(outcome, Outcome::TRANSIENT);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn response_outcome(
    status: StatusCode,
    headers: &HeaderMap,
    idempotency: Idempotency,
    hint: Option<ServerHint>,
) -> Outcome {
    match outcome(status, idempotency, hint) {
        // `false` is in the hint: `DoNotRetry`.
        Outcome::Permanent if should_retry(headers) == Some(true) => {
            Outcome::Failed { kind: FailureKind::Transient, hint }
        }
        outcome => outcome,
    }
}
