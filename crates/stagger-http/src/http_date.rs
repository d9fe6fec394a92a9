use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

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
