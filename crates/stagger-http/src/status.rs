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
use stagger::{FailureKind, Outcome, ServerHint};

/// Whether the request carries an `Idempotency-Key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyed {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// What a status means: see the [table](self). `hint` is what the response says about coming back; see
/// [`advice`](crate::advice).
///
/// ```
/// use http::StatusCode;
/// use stagger::Outcome;
/// use stagger_http::status::{Keyed, outcome};
///
/// assert_eq!(outcome(StatusCode::BAD_GATEWAY, Keyed::No, None), Outcome::TRANSIENT);
/// assert_eq!(outcome(StatusCode::NOT_IMPLEMENTED, Keyed::No, None), Outcome::Permanent);
/// ```
#[must_use]
pub fn outcome(status: StatusCode, keyed: Keyed, hint: Option<ServerHint>) -> Outcome {
    let failed = |kind| Outcome::Failed { kind, hint };
    match (status.as_u16(), keyed) {
        (..400, _) => Outcome::Success,
        (429, _) => failed(FailureKind::Throttled),
        (503, _) if hint.is_some() => failed(FailureKind::Throttled),
        (408 | 425, _) | (409, Keyed::Yes) => failed(FailureKind::Transient),
        (501 | 505..=508 | 510 | 511, _) | (400..500 | 600.., _) => Outcome::Permanent,
        (500..600, _) => failed(FailureKind::Transient),
    }
}
