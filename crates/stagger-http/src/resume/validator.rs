use core::time::Duration;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, header};

/// What proves that two responses have the same representation: a strong validator (RFC 9110 §8.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Validator {
    /// A strong entity tag.
    Tag(HeaderValue),
    /// A `Last-Modified` that is strong in the sense of §8.8.2.2, as it was written.
    Date(HeaderValue),
}

impl Validator {
    /// Returns the strong validator of a response: its `ETag`, or its `Last-Modified` if dates are allowed.
    pub(super) fn of(headers: &HeaderMap, dates: bool) -> Option<Self> {
        match strong_tag(headers) {
            Some(tag) => Some(Self::Tag(tag.clone())),
            // A weak or malformed tag says that the server does not compare octets.
            None if headers.contains_key(header::ETAG) || !dates => None,
            None => strong_date(headers).map(|date| Self::Date(date.clone())),
        }
    }

    /// Returns the value of `If-Range`.
    pub(super) const fn if_range(&self) -> &HeaderValue {
        match self {
            Self::Tag(value) | Self::Date(value) => value,
        }
    }

    /// Compares it with that of a later response, by the strong comparison of §8.8.3.2: octet by octet.
    pub(super) fn compare(&self, headers: &HeaderMap) -> Comparison {
        let name = match self {
            Self::Tag(_) => header::ETAG,
            Self::Date(_) => header::LAST_MODIFIED,
        };
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Comparison::Missing,
            (Some(value), None) if value == self.if_range() => Comparison::Equal,
            _ => Comparison::Different,
        }
    }
}

/// How the validator of a response compares with the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Missing,
    Different,
}

/// Returns the only `ETag`, if it is strong and well-formed: characters between quotes.
fn strong_tag(headers: &HeaderMap) -> Option<&HeaderValue> {
    let value = only(headers, header::ETAG)?;
    let inner = value.as_bytes().strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let is_tag_character = |byte: &u8| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..);
    if inner.iter().all(is_tag_character) { Some(value) } else { None }
}

/// Returns the `Last-Modified` if it is at least a second before the `Date`: later, the representation may have changed
/// twice within that second.
fn strong_date(headers: &HeaderMap) -> Option<&HeaderValue> {
    let modified = only(headers, header::LAST_MODIFIED)?;
    let sent = date(only(headers, header::DATE)?)?;
    let is_strong = date(modified)?.checked_add(Duration::from_secs(1))? <= sent;
    if is_strong { Some(modified) } else { None }
}

fn date(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?).ok()
}

/// Returns a value that a message has once.
pub(super) fn only(headers: &HeaderMap, name: header::HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn only_a_strong_validator_is_taken() {
        let modified = ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
        let [same, next] =
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:38 GMT"].map(|date| ("date", date));
        for (lines, dates, want) in [
            (&[("etag", "\"v1\"")][..], false, Some("\"v1\"")),
            (&[("etag", "\"\"")], false, Some("\"\"")),
            (&[("etag", "W/\"v1\"")], true, None),
            (&[("etag", "v1")], true, None),
            (&[("etag", "\"v1")], true, None),
            (&[("etag", "\"a\"b\"")], true, None),
            (&[("etag", "\"a b\"")], true, None),
            (&[("etag", "\"a\""), ("etag", "\"a\"")], true, None),
            (&[modified, next], true, Some("Sun, 06 Nov 1994 08:49:37 GMT")),
            (&[modified, next], false, None),
            (&[modified, same], true, None),
            (&[modified], true, None),
            (&[("etag", "W/\"v1\""), modified, next], true, None),
            (&[("last-modified", "yesterday"), next], true, None),
        ] {
            let found = Validator::of(&headers(lines), dates);
            let found = found.as_ref().map(|validator| validator.if_range().to_str().unwrap());
            assert_eq!(found, want, "{lines:?}");
        }
    }

    #[test]
    fn a_weak_tag_is_never_equal() {
        let validator = Validator::of(&headers(&[("etag", "\"v1\"")]), false).unwrap();
        for (line, want) in
            [("\"v1\"", Comparison::Equal), ("W/\"v1\"", Comparison::Different), ("\"v1-gzip\"", Comparison::Different)]
        {
            assert_eq!(validator.compare(&headers(&[("etag", line)])), want, "{line}");
        }
        assert_eq!(validator.compare(&headers(&[])), Comparison::Missing);
        assert_eq!(validator.compare(&headers(&[("etag", "\"v1\""), ("etag", "\"v1\"")])), Comparison::Different);
    }
}
