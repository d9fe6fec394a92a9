//! What a status means for a retry.
//!
//! | status | meaning |
//! |---|---|
//! | 1xx, 2xx, 3xx | success |
//! | 408 request timeout, 425 too early | transient |
//! | 429 too many requests | throttled |
//! | 503 service unavailable | throttled if it says when to come back, else transient |
//! | 500, 502, 504, and every 5xx that is not named here | transient |
//! | 501, 505, 506, 507, 508, 510, 511 | permanent: it will be the same the next time |
//! | 409 conflict | transient if the request carries an `Idempotency-Key`: the first one is still being worked on |
//! | every other 4xx | permanent |
//!
//! 401 and 403 are permanent here; whoever can get fresh credentials makes the request anew with them, once.

use http::StatusCode;
use stagger::{Hint, Kind, Outcome};

use crate::Idempotency;

/// What a status means: see the [table](self). `hint` is what the response says about coming back; see
/// [`advice`](crate::hint).
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
pub fn outcome(status: StatusCode, idempotency: Idempotency, hint: Option<Hint>) -> Outcome {
    let failed = |kind| Outcome::Failed { kind, hint };
    match (status.as_u16(), idempotency) {
        (..400, _) => Outcome::Success,
        (429, _) => failed(Kind::Throttled),
        (503, _) if hint.is_some() => failed(Kind::Throttled),
        (408 | 425, _) | (409, Idempotency::ByKey) => failed(Kind::Transient),
        (501 | 505..=508 | 510 | 511, _) | (400..500 | 600.., _) => Outcome::Permanent,
        (500..600, _) => failed(Kind::Transient),
    }
}
