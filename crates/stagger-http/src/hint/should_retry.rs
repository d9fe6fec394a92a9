use http::HeaderMap;

use crate::header::SHOULD_RETRY;

/// Parses what the server says about a retry: whether it may succeed.
///
/// It says nothing about whether a retry is safe. Returns `None` if the header is missing, repeated, or neither `true` nor
/// `false`.
///
/// ```
/// use http::HeaderMap;
/// use stagger_http::hint::should_retry;
///
/// let headers = HeaderMap::from_iter([("x-should-retry".parse()?, "false".parse()?)]);
/// assert_eq!(should_retry(&headers), Some(false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn should_retry(headers: &HeaderMap) -> Option<bool> {
    let mut values = headers.get_all(SHOULD_RETRY).into_iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    match only.as_bytes() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}
