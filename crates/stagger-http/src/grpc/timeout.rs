use core::time::Duration;

use http::HeaderName;

/// `grpc-timeout`, in a request: the time until the caller gives up.
pub const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Returns the `grpc-timeout` of a request, which spans all attempts.
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub(crate) fn timeout_of(headers: &http::HeaderMap) -> Option<Duration> {
    parse_timeout(headers.get(TIMEOUT)?.to_str().ok()?)
}

/// Formats a duration as a `grpc-timeout`: at most eight digits and the finest unit that fits. Rounds down, so that the server
/// does not get more time than is left.
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
