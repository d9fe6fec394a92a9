use core::time::Duration;
use std::time::SystemTime;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

use super::date::parse_http_date;
use crate::header::parse_digits;

/// The value of a `Retry-After` header (RFC 9110 §10.2.3).
///
/// The RFC defines no other forms, so the enum is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// A delay relative to receipt of the response (`delay-seconds`).
    Delay(Duration),
    /// A point in time on the server's clock (`HTTP-date`).
    Date(SystemTime),
}

impl RetryAfter {
    /// Parses a header value: ASCII digits, or a [date](parse_http_date) whose century is determined from `now`. Leading and
    /// trailing spaces and tabs are ignored. Returns `None` for anything else.
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

    /// Returns the delay from `now`, on the clock that the header was written by. A date in the past is a delay of zero.
    #[must_use]
    pub fn delay_from(self, now: SystemTime) -> Duration {
        match self {
            Self::Delay(wait) => wait,
            Self::Date(date) => date.duration_since(now).unwrap_or(Duration::ZERO),
        }
    }
}

/// Returns the delay that the `Retry-After` header of a response asks for.
///
/// `now` is the wall-clock time at which the response was received. A date is measured against the response's own `Date`
/// header if it has one, so the clocks of client and server may differ.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let values =
        headers.get_all(RETRY_AFTER).into_iter().filter_map(|value| RetryAfter::parse(value.to_str().ok()?, now));
    let sent = || headers.get(DATE).and_then(|date| parse_http_date(date.to_str().ok()?, now));
    values.map(|value| value.delay_from(sent().unwrap_or(now))).max()
}

/// Returns the longest delay among the values of a header in milliseconds, with or without a fraction.
pub(super) fn milliseconds(headers: &HeaderMap, name: &str) -> Option<Duration> {
    let values = headers.get_all(name).into_iter();
    values.filter_map(|value| decimal_milliseconds(value.to_str().ok()?.trim_matches([' ', '\t']))).max()
}

/// Returns the longest delay among the values of a header in whole milliseconds. A fraction is malformed, as it is to the
/// AWS SDKs.
pub(super) fn whole_milliseconds(headers: &HeaderMap, name: &str) -> Option<Duration> {
    let values = headers.get_all(name).into_iter();
    let millis = values.filter_map(|value| parse_digits(value.to_str().ok()?.trim_matches([' ', '\t'])));
    millis.map(Duration::from_millis).max()
}

fn decimal_milliseconds(text: &str) -> Option<Duration> {
    let (millis, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let (millis, fraction) = (parse_digits(millis)?, fraction.get(..6).unwrap_or(fraction));
    // Six decimals of a millisecond are nanoseconds; further decimals are dropped.
    let nanos = parse_digits(fraction)?.checked_mul(10_u64.pow(6 - u32::try_from(fraction.len()).ok()?))?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_number.then(|| Duration::from_millis(millis).saturating_add(Duration::from_nanos(nanos)))
}
