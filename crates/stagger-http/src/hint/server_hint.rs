use std::time::SystemTime;

use http::HeaderMap;
use stagger::ServerHint;
use stagger::admission::Reservation;

use super::rate_limit::rate_limit;
use super::reservation::reservation;
use super::retry_after::{milliseconds, retry_after, whole_milliseconds};
use super::should_retry::should_retry;

/// Returns the hint of a response: when the server asks for the next attempt, by the first valid header of the
/// [table](super).
///
/// `now` returns the wall-clock time at which the response was received. It is not called if the server forbids a retry, or if a
/// reservation or a header in milliseconds is present.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::HeaderMap;
/// use stagger::ServerHint;
/// use stagger_http::hint::server_hint;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "2".parse()?);
/// assert_eq!(server_hint(&headers, SystemTime::now), Some(ServerHint::AtLeast(Duration::from_secs(2))));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn server_hint(headers: &HeaderMap, now: impl FnOnce() -> SystemTime) -> Option<ServerHint> {
    server_hint_after(reservation(headers), headers, now)
}

/// Returns the hint of a response whose [`reservation`] has been parsed.
pub(crate) fn server_hint_after(
    reservation: Option<Reservation>,
    headers: &HeaderMap,
    now: impl FnOnce() -> SystemTime,
) -> Option<ServerHint> {
    if should_retry(headers) == Some(false) {
        return Some(ServerHint::DoNotRetry);
    }
    if let Some(reservation) = reservation {
        return Some(ServerHint::Reserved(reservation.after));
    }
    let millis = ["retry-after-ms", "x-ms-retry-after-ms"].into_iter().find_map(|name| milliseconds(headers, name));
    let millis = millis.or_else(|| whole_milliseconds(headers, "x-amz-retry-after"));
    let wait = millis.or_else(|| {
        let now = now();
        retry_after(headers, now).or_else(|| rate_limit(headers, now))
    });
    wait.map(ServerHint::AtLeast)
}
