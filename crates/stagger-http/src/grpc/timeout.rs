use core::time::Duration;

use http::HeaderName;

/// How long the server has.
pub const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// What the headers of a request say about how long its caller waits: for all attempts together.
#[cfg(feature = "tower")]
pub(crate) fn timeout_of(headers: &http::HeaderMap) -> Option<Duration> {
    parse_timeout(headers.get(TIMEOUT)?.to_str().ok()?)
}

/// A length as a `grpc-timeout`: at most eight digits and a unit, the finest that holds it; rounded down, so that the
/// server is not given more than there is.
///
/// ```
/// # use core::time::Duration;
/// assert_eq!(stagger_http::grpc::format_timeout(Duration::from_millis(1500)), "1500000u");
/// assert_eq!(stagger_http::grpc::format_timeout(Duration::from_secs(3600)), "3600000m");
/// ```
#[must_use]
pub fn format_timeout(length: Duration) -> String {
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
