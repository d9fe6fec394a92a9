use core::time::Duration;
use std::time::SystemTime;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

use super::date::parse_http_date;
use crate::number::parse_digits;

/// What a `Retry-After` says: RFC 9110, 10.2.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// So long after the response was received.
    Delay(Duration),
    /// At this time, by the server's clock.
    Date(SystemTime),
}

impl RetryAfter {
    /// Reads a value: digits and nothing else, or a [date](parse_http_date), whose century is taken from `now`. White space
    /// around it is not part of it.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use stagger_http::hint::RetryAfter;
    ///
    /// let read = |text| RetryAfter::parse(text, SystemTime::UNIX_EPOCH);
    /// assert_eq!(read("120"), Some(RetryAfter::Delay(Duration::from_secs(120))));
    /// assert_eq!(read("1.5"), None);
    /// ```
    #[must_use]
    pub fn parse(value: &str, now: SystemTime) -> Option<Self> {
        let value = value.trim_matches([' ', '\t']);
        match parse_digits(value) {
            Some(seconds) => Some(Self::Delay(Duration::from_secs(seconds))),
            None => parse_http_date(value, now).map(Self::Date),
        }
    }

    /// How long to wait, if it is `now` by the clock that wrote it. Zero for what is past.
    #[must_use]
    pub fn delay_from(self, now: SystemTime) -> Duration {
        match self {
            Self::Delay(wait) => wait,
            Self::Date(date) => date.duration_since(now).unwrap_or(Duration::ZERO),
        }
    }
}

/// How long the `Retry-After` of a response asks to wait. `now` is the wall clock at its receipt; a date is measured
/// against the response's own `Date` where it has one, so that clocks may be apart.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let values =
        headers.get_all(RETRY_AFTER).into_iter().filter_map(|value| RetryAfter::parse(value.to_str().ok()?, now));
    let sent = || headers.get(DATE).and_then(|date| parse_http_date(date.to_str().ok()?, now));
    values.map(|value| value.delay_from(sent().unwrap_or(now))).max()
}

/// The milliseconds of a header, with or without a fraction.
pub(super) fn milliseconds(headers: &HeaderMap, name: &str) -> Option<Duration> {
    let values = headers.get_all(name).into_iter();
    values.filter_map(|value| decimal_milliseconds(value.to_str().ok()?.trim_matches([' ', '\t']))).max()
}

fn decimal_milliseconds(text: &str) -> Option<Duration> {
    let (millis, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let (millis, fraction) = (parse_digits(millis)?, fraction.get(..6).unwrap_or(fraction));
    // Six digits of a millisecond are nanoseconds.
    let nanos = parse_digits(fraction)?.checked_mul(10_u64.pow(6 - u32::try_from(fraction.len()).ok()?))?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_number.then(|| Duration::from_millis(millis).saturating_add(Duration::from_nanos(nanos)))
}
