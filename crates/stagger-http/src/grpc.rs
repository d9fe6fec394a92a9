//! gRPC as it is on the wire: headers, trailers and numbers, without any of its libraries.

use core::time::Duration;

use http::{HeaderMap, HeaderName, header};
use stagger::{Hint, Outcome, classify};

/// What a server says about coming back, in milliseconds; a negative number, or anything that is none: never.
pub const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// How many attempts were made before this one, from the first retry on.
pub const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

/// How long the server has.
pub const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Whether a message with these headers is gRPC's.
#[must_use]
pub fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// What the headers of a response, or its trailers, say. `None` if they carry no status: then the answer has begun, and
/// what has begun is not retried.
///
/// By [`classify::grpc`], with the pushback as the hint; a status that is no number is permanent.
///
/// ```
/// use core::time::Duration;
/// use http::HeaderMap;
/// use stagger::{Hint, Kind, Outcome};
///
/// let mut trailers = HeaderMap::new();
/// trailers.insert("grpc-status", "14".parse()?);
/// assert_eq!(stagger_http::grpc::outcome(&trailers), Some(Outcome::TRANSIENT));
/// trailers.insert("grpc-retry-pushback-ms", "5000".parse()?);
/// let hint = Some(Hint::Floor(Duration::from_secs(5)));
/// assert_eq!(stagger_http::grpc::outcome(&trailers), Some(Outcome::Failed { kind: Kind::Transient, hint }));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn outcome(headers: &HeaderMap) -> Option<Outcome> {
    let status = headers.get(STATUS)?;
    let code = status.to_str().ok().and_then(|code| code.parse().ok());
    Some(match code.map_or(Outcome::Permanent, classify::grpc) {
        // One that a server or a proxy has cancelled, and not we.
        Outcome::Cancelled => Outcome::Permanent,
        Outcome::Failed { kind, .. } => Outcome::Failed { kind, hint: pushback(headers) },
        outcome => outcome,
    })
}

/// What a server says about coming back: so many milliseconds, digits and nothing else; anything else, and anything that is
/// there twice, is [`Hint::Never`]. `None`: it says nothing.
///
/// The wait is a floor, as every hint is, and not to the millisecond: what gRPC prescribes would bring all of them
/// back together.
#[must_use]
pub fn pushback(headers: &HeaderMap) -> Option<Hint> {
    let mut values = headers.get_all(PUSHBACK).into_iter();
    let value = values.next()?;
    let millis = value.to_str().ok().filter(|text| values.next().is_none() && is_plain(text));
    // An ASCII int32.
    let millis = millis.and_then(|text| text.parse::<u64>().ok()).filter(|&millis| millis <= i32::MAX as u64);
    Some(millis.map_or(Hint::Never, |millis| Hint::Floor(Duration::from_millis(millis))))
}

/// Digits, and no zero in front.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}

/// A length as a `grpc-timeout`: at most eight digits and a unit, the finest that holds it; rounded down, so that the
/// server is not given more than there is.
///
/// ```
/// # use core::time::Duration;
/// assert_eq!(stagger_http::grpc::timeout(Duration::from_millis(1500)), "1500000u");
/// assert_eq!(stagger_http::grpc::timeout(Duration::from_secs(3600)), "3600000m");
/// ```
#[must_use]
pub fn timeout(length: Duration) -> String {
    const MOST: u128 = 99_999_999;
    let units = [("n", 1), ("u", 1_000), ("m", 1_000_000), ("S", 1_000_000_000), ("M", 60_000_000_000_u128)];
    let fit =
        units.into_iter().map(|(unit, nanos)| (length.as_nanos() / nanos, unit)).find(|(count, _)| *count <= MOST);
    let (count, unit) = fit.unwrap_or(((length.as_nanos() / 3_600_000_000_000).min(MOST), "H"));
    format!("{count}{unit}")
}

/// Reads a `grpc-timeout`. `None` if it is none.
#[must_use]
pub fn parse_timeout(text: &str) -> Option<Duration> {
    let unit = text.char_indices().next_back()?;
    let count =
        text.get(..unit.0).filter(|count| count.len() <= 8 && count.bytes().all(|byte| byte.is_ascii_digit()))?;
    let count: u64 = count.parse().ok()?;
    Some(match unit.1 {
        'n' => Duration::from_nanos(count),
        'u' => Duration::from_micros(count),
        'm' => Duration::from_millis(count),
        'S' => Duration::from_secs(count),
        'M' => Duration::from_secs(count * 60),
        'H' => Duration::from_secs(count * 3600),
        _ => return None,
    })
}
