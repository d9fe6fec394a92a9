use core::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode, header};
use stagger::{FailureKind, Outcome, ServerHint, classify};

/// What a server says about coming back, in milliseconds; a negative number, or anything that is none: never.
pub const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// How many attempts were made before this one, from the first retry on.
pub const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const UNKNOWN: u32 = 2;

/// Whether a message with these headers is gRPC's.
#[must_use]
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).map_or(&[][..], |value| value.as_bytes());
    // What follows names an encoding, `+proto`, or says that it is for browsers, `-web`.
    value.strip_prefix(b"application/grpc").is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b'-' | b';')))
}

/// What the headers of a response, or its trailers, say. `None` if they carry no status: then the answer has begun, and
/// what has begun is not retried.
///
/// By [`classify::grpc`]; see [`outcome_by`].
///
/// ```
/// use core::time::Duration;
/// use http::HeaderMap;
/// use stagger::{ServerHint, FailureKind, Outcome};
///
/// let mut trailers = HeaderMap::new();
/// trailers.insert("grpc-status", "14".parse()?);
/// assert_eq!(stagger_http::grpc::outcome(&trailers), Some(Outcome::TRANSIENT));
/// trailers.insert("grpc-retry-pushback-ms", "5000".parse()?);
/// let hint = Some(ServerHint::AtLeast(Duration::from_secs(5)));
/// assert_eq!(stagger_http::grpc::outcome(&trailers), Some(Outcome::Failed { kind: FailureKind::Transient, hint }));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn outcome(headers: &HeaderMap) -> Option<Outcome> {
    outcome_by(headers, classify::grpc)
}

/// The same by another rule over status codes, such as [`Codes::outcome`](super::Codes::outcome).
///
/// A failure has the pushback as its hint. A status that is no number is `UNKNOWN`. What is permanent stays so, whatever the
/// pushback, except that the guards are to know of a server that says "never": that is a failure which is not retried.
#[must_use]
pub fn outcome_by(headers: &HeaderMap, rule: impl FnOnce(u32) -> Outcome) -> Option<Outcome> {
    let status = headers.get(STATUS)?;
    let code = status.to_str().ok().and_then(|code| code.parse().ok());
    Some(match (rule(code.unwrap_or(UNKNOWN)), pushback(headers)) {
        (Outcome::Failed { kind, .. }, hint) => Outcome::Failed { kind, hint },
        (Outcome::Permanent | Outcome::Cancelled, Some(ServerHint::DoNotRetry)) => {
            Outcome::Failed { kind: FailureKind::Throttled, hint: Some(ServerHint::DoNotRetry) }
        }
        // One that a server or a proxy has cancelled, and not we.
        (Outcome::Cancelled, _) => Outcome::Permanent,
        (outcome, _) => outcome,
    })
}

/// The code that stands for the answer of a proxy which knows nothing of gRPC.
///
/// Source: gRPC, "HTTP to gRPC Status Code Mapping".
///
/// ```
/// use http::StatusCode;
/// assert_eq!(stagger_http::grpc::code_of(StatusCode::BAD_GATEWAY), 14);
/// assert_eq!(stagger_http::grpc::code_of(StatusCode::INTERNAL_SERVER_ERROR), 2);
/// ```
#[must_use]
pub fn code_of(status: StatusCode) -> u32 {
    match status.as_u16() {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502..=504 => 14,
        _ => UNKNOWN,
    }
}

/// What a server says about coming back: so many milliseconds, digits and nothing else; anything else, and anything that is
/// there twice, is [`ServerHint::DoNotRetry`]. `None`: it says nothing.
///
/// The wait is a floor, as every hint is, and not to the millisecond: what gRPC prescribes would bring all of them
/// back together.
#[must_use]
pub fn pushback(headers: &HeaderMap) -> Option<ServerHint> {
    let mut values = headers.get_all(PUSHBACK).into_iter();
    let value = values.next()?;
    let millis = value.to_str().ok().filter(|text| values.next().is_none() && is_plain(text));
    // An ASCII int32.
    let millis = millis.and_then(|text| text.parse::<u64>().ok()).filter(|&millis| millis <= i32::MAX as u64);
    Some(millis.map_or(ServerHint::DoNotRetry, |millis| ServerHint::AtLeast(Duration::from_millis(millis))))
}

/// Digits, and no zero in front.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}
