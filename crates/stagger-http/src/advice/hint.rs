use std::time::SystemTime;

use http::HeaderMap;
use stagger::ServerHint;

use super::rate_limit::rate_limit;
use super::retry_after::{milliseconds, retry_after};
use super::slot::slot;

/// When a response asks to be called again: the first of the headers in the [table](super) that says so.
///
/// `now` is the wall clock at its receipt, and is read only for a header that has a date or a Unix time in it.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::HeaderMap;
/// use stagger::ServerHint;
/// use stagger_http::advice::hint;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "2".parse()?);
/// assert_eq!(hint(&headers, SystemTime::now), Some(ServerHint::AtLeast(Duration::from_secs(2))));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn hint(headers: &HeaderMap, now: impl FnOnce() -> SystemTime) -> Option<ServerHint> {
    if let Some(appointment) = slot(headers) {
        return Some(ServerHint::Reserved(appointment.after));
    }
    let millis = ["retry-after-ms", "x-ms-retry-after-ms"].into_iter().find_map(|name| milliseconds(headers, name));
    let wait = millis.or_else(|| {
        let now = now();
        retry_after(headers, now).or_else(|| rate_limit(headers, now))
    });
    wait.map(ServerHint::AtLeast)
}
