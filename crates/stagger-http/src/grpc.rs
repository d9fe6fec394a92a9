//! The parts of the gRPC protocol that concern retries: headers, trailers and status codes. Needs no gRPC library.
//!
//! | retries in gRPC (proposal A6) | here |
//! |---|---|
//! | a status without a message is retried if the policy lists its code | same, by [`Codes`] or [`classify::grpc`] |
//! | once response headers have been received, the call is not retried | same: [`outcome`] returns `None` |
//! | a pushback replaces the delay, to the millisecond | it is a lower bound, and above `max-hint` ends the call |
//! | after a pushback, the delays restart with the first one | they continue, since the server is no less busy |
//! | a negative, malformed or repeated pushback: no retry | same |
//! | a request that exceeds the buffer is not retried | same |
//! | a request that the server has not seen or not processed is retried transparently | once, immediately |
//! | the deadline of a call spans all attempts | same; a retry that would come after the deadline is not waited for |
//! | each retry carries `grpc-previous-rpc-attempts` | same |
//! | a failure takes a token, a success returns a part of one | same: [`Throttle`](stagger::budget::Throttle) |
//!
//! A pushback is a lower bound so that clients with the same one do not come back together; `hint=exact` does what gRPC
//! does. For the throttle, a response whose headers have been received is a success.

use core::fmt;
use core::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode, header};
use stagger::{FailureKind, Outcome, ServerHint, classify};

use crate::header::only_value;

#[cfg(feature = "tonic")]
#[cfg_attr(docsrs, doc(cfg(feature = "tonic")))]
pub use crate::tonic_status::tonic;

/// A set of gRPC status codes: the retryable codes of a policy, or the non-fatal codes of a hedged call.
///
/// ```
/// use stagger::Outcome;
/// use stagger_http::grpc::Codes;
///
/// let codes = Codes::new(&[14, 10]);
/// assert_eq!(codes.outcome(14), Outcome::TRANSIENT);
/// assert_eq!(codes.outcome(4), Outcome::Permanent);
/// assert_eq!(codes.to_string(), "ABORTED, UNAVAILABLE");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Codes(u32);

const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl Codes {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// `UNAVAILABLE` only: the server cannot be reached or is shutting down. The right set for most methods.
    pub const UNAVAILABLE: Self = Self::new(&[14]);

    /// Creates a set of these codes. Range 0 to 16; other numbers are not gRPC codes and are ignored.
    #[must_use]
    pub const fn new(codes: &[u32]) -> Self {
        let (mut set, mut at) = (0, 0);
        while at < codes.len() {
            if (codes[at] as usize) < NAMES.len() {
                set |= 1 << codes[at];
            }
            at += 1;
        }
        Self(set)
    }

    /// Returns whether the set contains `code`.
    #[must_use]
    pub const fn contains(self, code: u32) -> bool {
        code < u32::BITS && self.0 >> code & 1 == 1
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the numbers of the codes, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..u32::BITS).filter(move |&code| self.contains(code))
    }

    /// Returns the names of the codes, in the order of their numbers.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.iter().filter_map(|code| NAMES.get(code as usize).copied())
    }

    /// Returns the number of the code with this name, ignoring case, or `None` if gRPC has no such code.
    #[must_use]
    pub fn code_from_name(name: &str) -> Option<u32> {
        let code = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        u32::try_from(code).ok()
    }

    /// Classifies a status with these codes as the retryable ones: a code in the set is transient
    /// (`RESOURCE_EXHAUSTED`: throttled), any other is permanent, and 0 is a success.
    #[must_use]
    pub const fn outcome(self, code: u32) -> Outcome {
        const RESOURCE_EXHAUSTED: u32 = 8;
        match code {
            0 => Outcome::Success,
            _ if !self.contains(code) => Outcome::Permanent,
            RESOURCE_EXHAUSTED => Outcome::Failed { kind: FailureKind::Throttled, hint: None },
            _ => Outcome::TRANSIENT,
        }
    }
}

impl fmt::Display for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names().enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// `grpc-retry-pushback-ms`, in a response: the delay before the next attempt, in milliseconds. A negative or malformed
/// value means that the call must not be retried.
pub const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// `grpc-previous-rpc-attempts`, in a request: the number of attempts before this one. Sent from the first retry on.
pub const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const UNKNOWN: u32 = 2;

/// Returns whether a message with these headers is a gRPC message, by its content type.
#[must_use]
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers.get(header::CONTENT_TYPE) else { return false };
    match content_type.as_bytes().strip_prefix(b"application/grpc") {
        // The suffix names an encoding (`+proto`) or gRPC-Web (`-web`).
        Some(suffix) => matches!(suffix.first(), None | Some(b'+' | b'-' | b';')),
        None => false,
    }
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
/// [`Codes::outcome`](Codes::outcome).
///
/// The outcome of a failure carries the pushback as its hint. A malformed status counts as `UNKNOWN`. A permanent
/// status stays permanent whatever the pushback, with one exception: if the pushback forbids retries, the outcome is a
/// throttled failure that is not retried, so that the guards count it.
#[must_use]
pub fn outcome_with(headers: &HeaderMap, rule: impl FnOnce(u32) -> Outcome) -> Option<Outcome> {
    let status = headers.get(STATUS)?;
    let code = status.to_str().unwrap_or_default().parse().unwrap_or(UNKNOWN);
    Some(outcome_by(rule(code), pushback(headers)))
}

/// Returns the outcome of a status that the server sent, by what its code means and the server's hint.
pub(crate) fn outcome_by(rule: Outcome, hint: Option<ServerHint>) -> Outcome {
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

/// Parses the pushback of a response: a delay in milliseconds, ASCII digits only. Returns [`ServerHint::DoNotRetry`] if
/// the header is malformed, negative or repeated, and `None` if it is missing.
///
/// The delay is a lower bound, like other hints. gRPC prescribes it to the millisecond, which would bring all clients
/// back at the same moment.
#[must_use]
pub fn pushback(headers: &HeaderMap) -> Option<ServerHint> {
    if !headers.contains_key(PUSHBACK) {
        return None;
    }
    Some(match pushback_millis(headers) {
        Some(millis) => ServerHint::AtLeast(Duration::from_millis(millis)),
        None => ServerHint::DoNotRetry,
    })
}

/// Returns the number in the only pushback: an int32 in ASCII, which is digits without leading zeros.
fn pushback_millis(headers: &HeaderMap) -> Option<u64> {
    let text = only_value(headers, &PUSHBACK)?.to_str().ok()?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let millis = text.parse().ok()?;
    if is_plain && millis <= i32::MAX as u64 { Some(millis) } else { None }
}

/// `grpc-timeout`, in a request: the time until the caller gives up.
pub const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Returns the `grpc-timeout` of a request, which spans all attempts.
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub(crate) fn timeout_of(headers: &HeaderMap) -> Option<Duration> {
    parse_timeout(headers.get(TIMEOUT)?.to_str().ok()?)
}

/// Formats a duration as a `grpc-timeout`: at most eight digits and the finest unit that fits. Rounds down, so that the
/// server does not get more time than is left.
///
/// ```
/// # use core::time::Duration;
/// assert_eq!(stagger_http::grpc::format_timeout(Duration::from_millis(1500)), "1500000u");
/// assert_eq!(stagger_http::grpc::format_timeout(Duration::from_secs(3600)), "3600000m");
/// ```
#[must_use]
pub fn format_timeout(duration: Duration) -> String {
    const MAX: u128 = 99_999_999;
    let units = [("n", 1), ("u", 1_000), ("m", 1_000_000), ("S", 1_000_000_000), ("M", 60_000_000_000_u128)];
    let fit =
        units.into_iter().map(|(unit, nanos)| (duration.as_nanos() / nanos, unit)).find(|(count, _)| *count <= MAX);
    let (count, unit) = fit.unwrap_or(((duration.as_nanos() / 3_600_000_000_000).min(MAX), "H"));
    format!("{count}{unit}")
}

/// Parses a `grpc-timeout`. Returns `None` if it is malformed.
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
