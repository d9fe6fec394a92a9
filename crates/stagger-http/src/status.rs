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
//! 401 and 403 are permanent here. A client that can refresh its credentials retries once with the new ones. For an API
//! that announces its rate limit with 403, ask [`announced_wait`] first, or set the option `announced_waits` of the
//! tower layer or the reqwest middleware.

use http::{HeaderMap, StatusCode};
use stagger::{FailureKind, Outcome, ServerHint};

use crate::hint::{is_exhausted, names_wait, should_retry};
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

/// Classifies a 403 or 413 that announces when to return, as throttled. Returns `None` for any other response.
///
/// | status | announces it with |
/// |---|---|
/// | 403 forbidden | `Retry-After` and the other headers of a delay, or a rate limit with nothing remaining |
/// | 413 content too large | `Retry-After` and the other headers of a delay: RFC 9110 §15.5.14 |
///
/// It is an option, and no part of [`outcome`], because most servers mean by 403 that the client may never do this.
/// GitHub's API answers 403, with `Retry-After` or `X-RateLimit-Remaining: 0`, to a client that was too fast.
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use stagger::Outcome;
/// use stagger_http::status::announced_wait;
///
/// let headers = HeaderMap::from_iter([("x-ratelimit-remaining".parse()?, "0".parse()?)]);
/// assert_eq!(announced_wait(StatusCode::FORBIDDEN, &headers, None), Some(Outcome::throttled(None)));
/// assert_eq!(announced_wait(StatusCode::FORBIDDEN, &HeaderMap::new(), None), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn announced_wait(status: StatusCode, headers: &HeaderMap, hint: Option<ServerHint>) -> Option<Outcome> {
    let is_announced = match (status, hint) {
        (_, Some(ServerHint::DoNotRetry)) => false,
        (StatusCode::FORBIDDEN, hint) => hint.is_some() && names_wait(headers) || is_exhausted(headers),
        (StatusCode::PAYLOAD_TOO_LARGE, Some(_)) => names_wait(headers),
        _ => false,
    };
    if is_announced { Some(Outcome::throttled(hint)) } else { None }
}

/// Whether a 403 or 413 may be a rate limit: [`announced_wait`].
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnouncedWaits {
    Follow,
    Ignore,
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::time::{SystemTime, UNIX_EPOCH};

    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::hint::server_hint;

    /// Each status with an announced wait, and the wait in seconds.
    #[test]
    fn a_403_or_413_is_throttled_if_it_announces_a_wait() {
        let now = || UNIX_EPOCH + Duration::from_secs(1_795_255_200);
        let token = "1500;token=00000000000000000000000000000007";
        let (spent, left) = (("x-ratelimit-remaining", "0"), ("x-ratelimit-remaining", "17"));
        for (status, headers, want) in [
            (403, &[("retry-after", "60")][..], Some(Some(60.0))),
            (403, &[("retry-after-ms", "1500")], Some(Some(1.5))),
            (403, &[("stagger-reservation", token)], Some(Some(1.5))),
            (403, &[spent, ("x-ratelimit-reset", "1795255202")], Some(Some(2.0))),
            (403, &[spent], Some(None)),
            (403, &[("ratelimit-remaining", "0")], Some(None)),
            (403, &[("ratelimit", r#""default";r=0;t=30"#)], Some(Some(30.0))),
            (403, &[("retry-after", "60"), left], Some(Some(60.0))),
            (403, &[], None),
            (403, &[left, ("x-ratelimit-reset", "1795255202")], None),
            // Some servers add it to every response.
            (403, &[("x-ratelimit-reset", "30")], None),
            (403, &[("retry-after", "soon")], None),
            (403, &[("retry-after", "253402300799")], None),
            (403, &[("retry-after", "60"), ("x-should-retry", "false")], None),
            (413, &[("retry-after", "60")], Some(Some(60.0))),
            (413, &[spent, ("x-ratelimit-reset", "1795255202")], None),
            (413, &[], None),
            (401, &[("retry-after", "60")], None),
            (404, &[spent, ("retry-after", "60")], None),
        ] {
            let lines =
                headers.iter().map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            let lines = HeaderMap::from_iter(lines);
            let hint = server_hint(&lines, now as fn() -> SystemTime);
            let found = announced_wait(StatusCode::from_u16(status).unwrap(), &lines, hint);
            let waits = found.map(|outcome| match outcome {
                Outcome::Failed { kind: FailureKind::Throttled, hint } => match hint {
                    Some(ServerHint::AtLeast(wait) | ServerHint::Reserved(wait)) => Some(wait.as_secs_f64()),
                    _ => None,
                },
                other => panic!("{other:?}"),
            });
            assert_eq!(waits, want, "{status} {headers:?}");
        }
    }
}
