//! Names of the request and response headers that this crate reads and writes.
//!
//! gRPC's headers are in [`grpc`](crate::grpc).

use http::{HeaderMap, HeaderName, HeaderValue};

/// `idempotency-key`: makes a request idempotent. The server executes only the first request with a given key.
///
/// Source: IETF draft "The Idempotency-Key HTTP Header Field".
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// `x-retry-attempt`: the number of the attempt, from 1. A client that sends it retries.
pub const RETRY_ATTEMPT: HeaderName = HeaderName::from_static("x-retry-attempt");

/// `stagger-timeout-ms`: the time until the caller gives up, in whole milliseconds.
pub const TIMEOUT_MS: HeaderName = HeaderName::from_static("stagger-timeout-ms");

/// `stagger-reservation`, in a response: an admission reservation for this client alone.
///
/// The value is the delay in milliseconds and the reservation's token: `1520;token=` followed by 32 hexadecimal digits.
pub const RESERVATION: HeaderName = HeaderName::from_static("stagger-reservation");

/// `stagger-reservation-token`, in a request: the token of the reservation that the client redeems, 32 hexadecimal
/// digits.
pub const RESERVATION_TOKEN: HeaderName = HeaderName::from_static("stagger-reservation-token");

/// `retry-after-ms`, in a response: the delay before the next attempt, in milliseconds. Several clients and servers use
/// it beside `Retry-After`.
pub const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// `x-should-retry`, in a response: `true` or `false`, whether a retry may succeed. The APIs of OpenAI and Anthropic
/// send it.
pub const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Parses `1*DIGIT`, without a sign. Saturates at `u64::MAX`. Returns `None` for anything else.
pub(crate) fn parse_digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Digits alone do not fit only if they are too many.
    Some(text.parse().unwrap_or(u64::MAX))
}

/// Returns the value of a header that occurs once. Returns `None` if it is missing or repeated.
pub(crate) fn only_value<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_none() { Some(value) } else { None }
}

/// Returns the text of a header value without the spaces and tabs around it.
pub(crate) fn trimmed(value: &HeaderValue) -> Option<&str> {
    Some(value.to_str().ok()?.trim_matches([' ', '\t']))
}
