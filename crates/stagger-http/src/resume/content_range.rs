use http::{HeaderMap, header};

use super::validator::only;

/// A `Content-Range` of bytes (RFC 9110 §14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentRange {
    /// `bytes FIRST-LAST/TOTAL`, or `*` for a total that is not known.
    Part { first: u64, last: u64, total: Option<u64> },
    /// `bytes */TOTAL`: nothing of the range exists.
    Unsatisfied { total: u64 },
}

impl ContentRange {
    /// Returns the only `Content-Range` of a response, if it is valid.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        Self::parse(only(headers, header::CONTENT_RANGE)?.to_str().ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let (unit, rest) = text.split_once(' ')?;
        let (range, total) = rest.split_once('/')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        if range == "*" {
            return Some(Self::Unsatisfied { total: number(total)? });
        }
        let (first, last) = range.split_once('-')?;
        let (first, last) = (number(first)?, number(last)?);
        let total = if total == "*" { None } else { Some(number(total)?) };
        // `last + 1` is used below, so the largest number is not valid either.
        let is_valid = first <= last && last < total.unwrap_or(u64::MAX);
        if is_valid { Some(Self::Part { first, last, total }) } else { None }
    }
}

/// Parses digits alone: no sign and no spaces.
pub(super) fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_strictly() {
        let part = |first, last, total| Some(ContentRange::Part { first, last, total });
        for (text, want) in [
            ("bytes 2-4/5", part(2, 4, Some(5))),
            ("Bytes 0-0/1", part(0, 0, Some(1))),
            ("bytes 2-4/*", part(2, 4, None)),
            ("bytes */5", Some(ContentRange::Unsatisfied { total: 5 })),
            ("bytes */*", None),
            ("bytes 4-2/5", None),
            ("bytes 2-5/5", None),
            ("bytes -4/5", None),
            ("bytes 2-/5", None),
            ("bytes +2-4/5", None),
            ("bytes 2 - 4/5", None),
            ("bytes  2-4/5", None),
            ("bytes=2-4/5", None),
            ("bytes 2-4", None),
            ("items 2-4/5", None),
            ("bytes 2-18446744073709551615/*", None),
            ("bytes 2-18446744073709551616/*", None),
            ("bytes -1-4/5", None),
            ("", None),
        ] {
            assert_eq!(ContentRange::parse(text), want, "{text}");
        }
    }
}
