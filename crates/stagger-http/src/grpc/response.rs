use core::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode, header};
use stagger::{FailureKind, Outcome, ServerHint, classify};

/// `grpc-retry-pushback-ms`, in a response: the delay before the next attempt, in milliseconds. A negative or malformed value
/// means that the call must not be retried.
pub const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// `grpc-previous-rpc-attempts`, in a request: the number of attempts before this one. Sent from the first retry on.
pub const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const UNKNOWN: u32 = 2;

/// Returns whether a message with these headers is a gRPC message, by its content type.
#[must_use]
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).map_or(&[][..], |value| value.as_bytes());
    // The suffix names an encoding (`+proto`) or gRPC-Web (`-web`).
    value.strip_prefix(b"application/grpc").is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b'-' | b';')))
}

/// Classifies a response by its headers or trailers, with [`classify::grpc`]; see [`outcome_with`].
///
/// Returns `None` if they carry no status. If they are headers, messages follow and the call must not be retried.
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
    outcome_with(headers, classify::grpc)
}

/// Classifies a response by its headers or trailers, with `rule` for the status code, such as
/// [`Codes::outcome`](super::Codes::outcome).
///
/// The outcome of a failure carries the pushback as its hint. A malformed status counts as `UNKNOWN`. A permanent status
/// stays permanent whatever the pushback, with one exception: if the pushback forbids retries, the outcome is a throttled
/// failure that is not retried, so that the guards count it.
#[must_use]
pub fn outcome_with(headers: &HeaderMap, rule: impl FnOnce(u32) -> Outcome) -> Option<Outcome> {
    let status = headers.get(STATUS)?;
    let code = status.to_str().ok().and_then(|code| code.parse().ok());
    Some(outcome_by(rule(code.unwrap_or(UNKNOWN)), pushback(headers)))
}

/// Returns the outcome of a status that the server sent, by what its code means and the server's hint.
pub(super) fn outcome_by(rule: Outcome, hint: Option<ServerHint>) -> Outcome {
    match (rule, hint) {
        (Outcome::Failed { kind, .. }, hint) => Outcome::Failed { kind, hint },
        (Outcome::Permanent | Outcome::Cancelled, Some(ServerHint::DoNotRetry)) => {
            Outcome::Failed { kind: FailureKind::Throttled, hint: Some(ServerHint::DoNotRetry) }
        }
        // Cancelled by the server or a proxy, not by this client.
        (Outcome::Cancelled, _) => Outcome::Permanent,
        (outcome, _) => outcome,
    }
}

/// Returns the gRPC code for a plain HTTP response, as a proxy that does not know gRPC sends it.
///
/// Source: gRPC, "HTTP to gRPC Status Code Mapping".
///
/// ```
/// use http::StatusCode;
/// assert_eq!(stagger_http::grpc::code_from_http_status(StatusCode::BAD_GATEWAY), 14);
/// assert_eq!(stagger_http::grpc::code_from_http_status(StatusCode::INTERNAL_SERVER_ERROR), 2);
/// ```
#[must_use]
pub fn code_from_http_status(status: StatusCode) -> u32 {
    match status.as_u16() {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502..=504 => 14,
        _ => UNKNOWN,
    }
}

/// Parses the pushback of a response: a delay in milliseconds, ASCII digits only. Returns [`ServerHint::DoNotRetry`] if the header is
/// malformed, negative or repeated, and `None` if it is missing.
///
/// The delay is a lower bound, like other hints. gRPC prescribes it to the millisecond, which would bring all clients back
/// at the same moment.
#[must_use]
pub fn pushback(headers: &HeaderMap) -> Option<ServerHint> {
    let mut values = headers.get_all(PUSHBACK).into_iter();
    let value = values.next()?;
    let millis = value.to_str().ok().filter(|text| values.next().is_none() && is_plain(text));
    // An ASCII int32.
    let millis = millis.and_then(|text| text.parse::<u64>().ok()).filter(|&millis| millis <= i32::MAX as u64);
    Some(millis.map_or(ServerHint::DoNotRetry, |millis| ServerHint::AtLeast(Duration::from_millis(millis))))
}

/// Returns whether the text is digits only, without leading zeros.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}
