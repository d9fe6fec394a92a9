//! Server hints: when a response asks for the next attempt.
//!
//! | header | format | becomes |
//! |---|---|---|
//! | [`x-should-retry`][should] | `false` | [`ServerHint::DoNotRetry`] |
//! | [`Stagger-Reservation`][reserved] | a [`Reservation`], in milliseconds | [`ServerHint::Reserved`] |
//! | `retry-after-ms`, `x-ms-retry-after-ms` | milliseconds, with or without a fraction | [`ServerHint::AtLeast`] |
//! | `x-amz-retry-after` | whole milliseconds, as the services of AWS send it | `ServerHint::AtLeast` |
//! | `Retry-After` | whole seconds, or one of the three date formats of RFC 9110 | `ServerHint::AtLeast` |
//! | `RateLimit` | the IETF draft, in both of its formats; only limits with nothing remaining | `ServerHint::AtLeast` |
//! | `RateLimit-Reset`, `X-RateLimit-Reset` | seconds, with or without a fraction, if nothing remains | the same |
//!
//! In every header, a number from 10⁹ on is no wait but a Unix time: in seconds, and from 10¹² on in milliseconds. A
//! time that has passed is a wait of zero. A wait of more than 366 days cannot be meant, so such a header is malformed:
//! the date is one in the year 9999, or the number has another unit.
//!
//! [should]: crate::header::SHOULD_RETRY
//! [reserved]: crate::header::RESERVATION
//!
//! With the hint mode of the AWS SDKs, [`HintMode::Clamp`](stagger::HintMode::Clamp), `x-amz-retry-after` adds at most
//! 5 s to the delay. A reservation is honored to the timer tick.
//!
//! The first row whose header is present and valid wins; malformed headers are ignored. If a header is repeated, the
//! longest delay wins: arriving late is safe, arriving early is not.
//!
//! `x-should-retry: true` is no hint when to return. The tower layer and the reqwest middleware then retry a status
//! that is otherwise permanent, if the request is safe to retry.

use core::cell::LazyCell;
use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};
use stagger::ServerHint;
use stagger::admission::Reservation;

use crate::header::{RESERVATION, SHOULD_RETRY, only_value, parse_digits, trimmed};

/// Returns the hint of a response: when the server asks for the next attempt, by the first valid header of the
/// [table](self).
///
/// `now` returns the wall-clock time at which the response was received. It is not called if the server forbids a
/// retry, or if a reservation or a wait in milliseconds is present.
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
    // A wait in milliseconds does not cost a look at the clock.
    let now = LazyCell::new(now);
    if let Some(wait) = in_milliseconds(headers, || *now) {
        return Some(ServerHint::AtLeast(wait));
    }
    let wait = match retry_after(headers, *now) {
        Some(wait) => wait,
        None => rate_limit(headers, *now)?,
    };
    Some(ServerHint::AtLeast(wait))
}

/// The longest wait that a server can mean, 366 days. A hint that asks for a longer one is malformed: it is a mistake,
/// such as a number with another unit.
pub const LONGEST_WAIT: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A number that can be read as a wait or as a point in time.
#[derive(Clone, Copy)]
enum Number {
    Wait(Duration),
    /// Since the Unix epoch.
    Time(Duration),
}

impl Number {
    /// Reads a number of units, of which a wait has so many. What would be decades in seconds is a Unix time, whatever
    /// the unit: servers confuse them.
    fn new(count: u64, unit: fn(u64) -> Duration) -> Self {
        match count {
            ..1_000_000_000 => Self::Wait(unit(count)),
            1_000_000_000..1_000_000_000_000 => Self::Time(Duration::from_secs(count)),
            1_000_000_000_000.. => Self::Time(Duration::from_millis(count)),
        }
    }

    /// Returns the wait from `now`, which is zero if the time has passed; `None` if no server can mean it.
    fn wait(self, now: impl FnOnce() -> SystemTime) -> Option<Duration> {
        possible(match self {
            Self::Wait(wait) => wait,
            Self::Time(time) => time.saturating_sub(now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)),
        })
    }
}

/// Returns the wait unless no server can mean it.
fn possible(wait: Duration) -> Option<Duration> {
    if wait <= LONGEST_WAIT { Some(wait) } else { None }
}

/// Returns the delay of the first valid header in milliseconds.
fn in_milliseconds(headers: &HeaderMap, now: impl Fn() -> SystemTime) -> Option<Duration> {
    for name in ["retry-after-ms", "x-ms-retry-after-ms"] {
        let wait = |text: &str| {
            let (millis, rest) = decimal(text)?;
            Some(Number::new(millis, Duration::from_millis).wait(&now)?.saturating_add(rest / 1_000))
        };
        if let Some(wait) = longest(headers, name, wait) {
            return Some(wait);
        }
    }
    // A fraction is malformed here, as it is to the AWS SDKs.
    let wait = |text: &str| Number::new(parse_digits(text)?, Duration::from_millis).wait(&now);
    longest(headers, "x-amz-retry-after", wait)
}

/// Returns the largest number among the values of a header. If a header is repeated, arriving late is safe, and
/// arriving early is not.
fn longest<T: Ord>(headers: &HeaderMap, name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    headers.get_all(name).iter().filter_map(|value| parse(trimmed(value)?)).max()
}

/// Parses digits, with or without a fraction: the whole number, and the rest as if it were one of seconds.
fn decimal(text: &str) -> Option<(u64, Duration)> {
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    // Nine decimals of a second are nanoseconds; further decimals are dropped.
    let fraction = fraction.get(..9).unwrap_or(fraction);
    let unit = 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    let nanos = parse_digits(fraction)?.checked_mul(unit)?;
    Some((parse_digits(whole)?, Duration::from_nanos(nanos)))
}

/// Parses what the server says about a retry: whether it may succeed.
///
/// It says nothing about whether a retry is safe. Returns `None` if the header is missing, repeated, or neither `true`
/// nor `false`.
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
    match only_value(headers, &SHOULD_RETRY)?.as_bytes() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

/// Returns whether a response has a header of a delay, and not only the state of a rate limit, which some servers add
/// to every response.
pub(crate) fn names_wait(headers: &HeaderMap) -> bool {
    let names = ["retry-after", "retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"];
    names.iter().any(|name| headers.contains_key(*name)) || headers.contains_key(RESERVATION)
}

/// Returns whether a response says that nothing of a rate limit remains, whether or not it says until when.
pub(crate) fn is_exhausted(headers: &HeaderMap) -> bool {
    let nothing_of = |name| longest(headers, name, parse_digits) == Some(0);
    nothing_of("ratelimit-remaining") || nothing_of("x-ratelimit-remaining") || !exhausted(headers).is_empty()
}

/// Parses the reservation of a response.
///
/// Returns `None` if the header is missing, malformed or repeated: which of several reservations the server kept is
/// unknown. One in more than 366 days is malformed.
#[must_use]
pub fn reservation(headers: &HeaderMap) -> Option<Reservation> {
    let reservation: Reservation = trimmed(only_value(headers, &RESERVATION)?)?.parse().ok()?;
    if reservation.after <= LONGEST_WAIT { Some(reservation) } else { None }
}

/// The value of a `Retry-After` header (RFC 9110 §10.2.3).
///
/// The RFC defines no other forms, so the enum is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// A delay relative to receipt of the response (`delay-seconds`).
    Delay(Duration),
    /// A point in time on the server's clock (`HTTP-date`, or a Unix time, which the RFC does not know).
    Date(SystemTime),
}

impl RetryAfter {
    /// Parses a header value: ASCII digits, or a [date](parse_http_date) whose century is determined from `now`.
    /// Leading and trailing spaces and tabs are ignored. A number from 10⁹ on is a Unix time in seconds, and from 10¹²
    /// on one in milliseconds. Returns `None` for anything else.
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
            Some(number) => match Number::new(number, Duration::from_secs) {
                Number::Wait(wait) => Some(Self::Delay(wait)),
                Number::Time(time) => UNIX_EPOCH.checked_add(time).map(Self::Date),
            },
            None => parse_http_date(value, now).map(Self::Date),
        }
    }

    /// Returns the delay from `now`, on the clock that the header was written by. A date in the past is a delay of
    /// zero.
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
/// `now` is the wall-clock time at which the response was received. A date is measured against the response's own
/// `Date` header if it has one, so the clocks of client and server may differ. A delay of more than 366 days is
/// malformed, and ignored.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let parse = |value: &HeaderValue| RetryAfter::parse(value.to_str().ok()?, now);
    let delay = |value: RetryAfter| match value {
        RetryAfter::Delay(delay) => delay,
        // RFC 9110 §6.6.1: `Date` is when the response was made, on the clock that has written the other date.
        date @ RetryAfter::Date(_) => date.delay_from(sent_at(headers, now).unwrap_or(now)),
    };
    headers.get_all(RETRY_AFTER).iter().filter_map(parse).map(delay).filter_map(possible).max()
}

fn sent_at(headers: &HeaderMap, now: SystemTime) -> Option<SystemTime> {
    parse_http_date(headers.get(DATE)?.to_str().ok()?, now)
}

/// Returns the time until the rate limit of a response resets, if the limit is exhausted.
///
/// - `RateLimit: "default";r=0;t=30` (IETF draft 8 and later): the longest `t` among the limits with `r=0`.
/// - `RateLimit: limit=100, remaining=0, reset=30` (draft 7).
/// - `RateLimit-Remaining: 0` and `RateLimit-Reset: 30` (earlier drafts), also with the prefix `X-`. A missing
///   `Remaining` counts as 0.
///
/// A reset of 10⁹ or more is a Unix time, as GitHub sends it, and from 10¹² on one in milliseconds. Malformed headers
/// are ignored, as the draft requires, and so is a reset in more than 366 days. `now` is the wall-clock time at which
/// the response was received.
#[must_use]
pub fn rate_limit(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    if let Some(wait) = from_draft(headers, now) {
        return Some(wait);
    }
    if let Some(wait) = from_pair(headers, "ratelimit-remaining", "ratelimit-reset", now) {
        return Some(wait);
    }
    from_pair(headers, "x-ratelimit-remaining", "x-ratelimit-reset", now)
}

fn from_draft(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let wait = |seconds| Number::new(seconds, Duration::from_secs).wait(|| now);
    exhausted(headers).into_iter().filter_map(wait).max()
}

/// Returns the resets of the limits with nothing remaining, by the draft.
fn exhausted(headers: &HeaderMap) -> Vec<u64> {
    let lines: Option<Vec<_>> = headers.get_all("ratelimit").into_iter().map(|line| line.to_str().ok()).collect();
    // A structured list may be split over several header lines.
    let text = lines.unwrap_or_default().join(", ");
    match Parser::new(&text).parse::<List>() {
        Ok(limits) if limits.iter().all(is_named) => limits.iter().filter_map(until_reset).collect(),
        // Draft 7 and before: one limit, in a dictionary.
        _ => exhausted_dictionary(&text).into_iter().collect(),
    }
}

fn exhausted_dictionary(text: &str) -> Option<u64> {
    let limit = Parser::new(text).parse::<Dictionary>().ok()?;
    let number = |name| number(bare(limit.get(name)?)?);
    if number("remaining")? == 0 { number("reset") } else { None }
}

fn is_named(entry: &ListEntry) -> bool {
    matches!(bare(entry), Some(BareItem::String(_)))
}

fn until_reset(entry: &ListEntry) -> Option<u64> {
    let ListEntry::Item(Item { params, .. }) = entry else { return None };
    let number = |name| number(params.get(name)?);
    if number("r")? == 0 { number("t") } else { None }
}

fn bare(entry: &ListEntry) -> Option<&BareItem> {
    if let ListEntry::Item(item) = entry { Some(&item.bare_item) } else { None }
}

fn number(item: &BareItem) -> Option<u64> {
    if let BareItem::Integer(number) = item { u64::try_from(i64::from(*number)).ok() } else { None }
}

fn from_pair(headers: &HeaderMap, remaining: &str, reset: &str, now: SystemTime) -> Option<Duration> {
    if headers.contains_key(remaining) && longest(headers, remaining, parse_digits) != Some(0) {
        return None;
    }
    longest(headers, reset, |text| {
        let (number, rest) = decimal(text)?;
        // After a time in milliseconds, this is up to a second too long.
        Some(Number::new(number, Duration::from_secs).wait(|| now)?.saturating_add(rest))
    })
}

/// Parses an HTTP date in any of the three formats of RFC 9110 §5.6.7, with their exact spelling:
///
/// - `Sun, 06 Nov 1994 08:49:37 GMT`
/// - `Sunday, 06-Nov-94 08:49:37 GMT`, whose year is the latest one with these two digits that is at most 50 years
///   after `now`
/// - `Sun Nov  6 08:49:37 1994`
///
/// A leap second (`:60`) is parsed as the following second. Returns `None` for anything else: another time zone, a
/// weekday that does not match the date, a year before 1970 or after 9999. Never panics.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use stagger_http::hint::parse_http_date;
///
/// let date = parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT", SystemTime::UNIX_EPOCH);
/// assert_eq!(date, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)));
/// ```
#[must_use]
pub fn parse_http_date(text: &str, now: SystemTime) -> Option<SystemTime> {
    if let Some(second) = without_leap_second(text) {
        let date = parse_ordinary(&second, now)?.checked_add(Duration::from_secs(1))?;
        return if date <= UNIX_EPOCH + LAST { Some(date) } else { None };
    }
    parse_ordinary(text, now)
}

fn parse_ordinary(text: &str, now: SystemTime) -> Option<SystemTime> {
    match obsolete(text) {
        // The parser takes spaces around the date, which the grammar has not.
        None if text.trim() != text => None,
        None => httpdate::parse_http_date(text).ok(),
        Some(date) => {
            let year = date.year.parse::<u32>().ok()?;
            let present = year_of(now);
            // The latest century that is not too far ahead wins.
            let candidates = [present / 100 + 1, present / 100, (present / 100).checked_sub(1)?];
            let limit = fifty_years_after(now);
            candidates.into_iter().find_map(|century| {
                let whole =
                    format!("{}, {} {} {:04} {}", date.weekday, date.day, date.month, century * 100 + year, date.rest);
                // The weekday rules out the other centuries.
                httpdate::parse_http_date(&whole).ok().filter(|&date| date <= limit)
            })
        }
    }
}

/// The parts of a date in the obsolete RFC 850 format, `Sunday, 06-Nov-94 08:49:37 GMT`.
struct Obsolete<'t> {
    weekday: &'static str,
    day: &'t str,
    month: &'t str,
    year: &'t str,
    rest: &'t str,
}

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

fn obsolete(text: &str) -> Option<Obsolete<'_>> {
    let (weekday, rest) = text.split_once(", ")?;
    let weekday = WEEKDAYS.into_iter().find(|name| *name == weekday)?;
    let (day, rest) = rest.split_once('-')?;
    let (month, rest) = rest.split_once('-')?;
    let (year, rest) = rest.split_once(' ')?;
    let is_number = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(day) || !is_number(year) {
        return None;
    }
    Some(Obsolete { weekday: &weekday[..3], day, month, year, rest })
}

/// Replaces the seconds `:60` by `:59`. Returns `None` if there is no leap second.
fn without_leap_second(text: &str) -> Option<String> {
    let at = text.rfind(":60")?;
    let (before, after) = (text.get(..at)?, text.get(at + 3..)?);
    // Without another colon before it, this is the minute.
    if before.contains(':') { Some(format!("{before}:59{after}")) } else { None }
}

/// The last second that an HTTP date can express, 9999-12-31 23:59:59, since the Unix epoch.
const LAST: Duration = Duration::from_secs(253_402_300_799);

fn year_of(now: SystemTime) -> u32 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).min(LAST);
    let text = httpdate::fmt_http_date(UNIX_EPOCH + since);
    text.get(12..16).and_then(|year| year.parse().ok()).unwrap_or(1970)
}

/// Returns the time 50 years after `now`, to within a day: 50 years have 12 or 13 leap days.
fn fifty_years_after(now: SystemTime) -> SystemTime {
    const DAY: u64 = 24 * 60 * 60;
    now.checked_add(Duration::from_secs((50 * 365 + 13) * DAY)).unwrap_or(now)
}
