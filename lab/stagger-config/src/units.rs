//! Lengths of time as the systems write them.

use core::time::Duration;

pub(crate) use stagger_http::service_config::fields::{format_duration as to_protobuf, parse_duration as protobuf};

/// Units and their lengths in nanoseconds. Longer names before their beginnings.
type Units = &'static [(&'static str, f64)];

const GO: Units =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9)];

const SYSTEMD: Units = &[
    ("usec", 1e3),
    ("us", 1e3),
    ("μs", 1e3),
    ("µs", 1e3),
    ("msec", 1e6),
    ("ms", 1e6),
    ("seconds", 1e9),
    ("second", 1e9),
    ("sec", 1e9),
    ("s", 1e9),
    ("minutes", 60e9),
    ("minute", 60e9),
    ("min", 60e9),
    ("months", 2_629_800e9),
    ("month", 2_629_800e9),
    ("M", 2_629_800e9),
    ("m", 60e9),
    ("hours", 3_600e9),
    ("hour", 3_600e9),
    ("hr", 3_600e9),
    ("h", 3_600e9),
    ("days", 86_400e9),
    ("day", 86_400e9),
    ("d", 86_400e9),
    ("weeks", 604_800e9),
    ("week", 604_800e9),
    ("w", 604_800e9),
    ("years", 31_557_600e9),
    ("year", 31_557_600e9),
    ("y", 31_557_600e9),
];

const HAPROXY: Units = &[("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9), ("d", 86_400e9)];

const SPRING: Units =
    &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9), ("d", 86_400e9)];

/// The part of a date of ISO 8601 before its `T`, and the part after it.
const ISO_DAYS: Units = &[("W", 604_800e9), ("D", 86_400e9)];
const ISO_TIME: Units = &[("H", 3_600e9), ("M", 60e9), ("S", 1e9)];

fn nanoseconds(nanoseconds: f64) -> Option<Duration> {
    // Decimal fractions are not exact in binary: whole nanoseconds are.
    if !nanoseconds.is_finite() {
        return None;
    }
    Duration::try_from_secs_f64(nanoseconds.round() / 1e9).ok()
}

/// The meaning of a number without a unit.
#[derive(Clone, Copy)]
enum Bare {
    Invalid,
    /// It counts this, in nanoseconds, and must be alone.
    Alone(f64),
    /// It counts this, also among others.
    Anywhere(f64),
}

/// Adds up numbers with units.
fn sum(text: &str, units: Units, bare: Bare) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = 0.0;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let number: f64 = rest[..digits].parse().ok()?;
        let has_space = rest[digits..].starts_with(char::is_whitespace);
        rest = rest[digits..].trim_start();
        let found = units.iter().filter(|(unit, _)| rest.starts_with(unit)).max_by_key(|(unit, _)| unit.len());
        let (unit, length) = match (found, bare) {
            (Some(found), _) => *found,
            (None, Bare::Alone(bare)) if parts == 0 && rest.is_empty() => ("", bare),
            (None, Bare::Anywhere(bare)) if rest.is_empty() || has_space => ("", bare),
            _ => return None,
        };
        total += number * length;
        rest = rest[unit.len()..].trim_start();
        parts += 1;
    }
    if parts == 0 { None } else { nanoseconds(total) }
}

/// Parses a duration of Go, as Kubernetes, Istio, Compose and Dapr have it: `1h30m`, `500ms`, `1.5s`, `0`.
pub(crate) fn go(text: &str) -> Option<Duration> {
    match text {
        "0" => Some(Duration::ZERO),
        _ if text.contains(' ') => None,
        _ => sum(text, GO, Bare::Invalid),
    }
}

/// Writes a duration of Go: the units that divide it, from seconds down.
pub(crate) fn to_go(duration: Duration) -> String {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    let parts = [
        (seconds, "s"),
        (u64::from(nanos / 1_000_000), "ms"),
        (u64::from(nanos / 1_000 % 1_000), "us"),
        (u64::from(nanos % 1_000), "ns"),
    ];
    let text: String =
        parts.iter().filter(|(number, _)| *number > 0).map(|(number, unit)| format!("{number}{unit}")).collect();
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Parses a time span of systemd: `5s`, `1min 30s`, and numbers of seconds without a unit.
pub(crate) fn systemd(text: &str) -> Option<Duration> {
    // A point needs digits behind it.
    let is_whole = text.split('.').skip(1).all(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if is_whole { sum(text, SYSTEMD, Bare::Anywhere(1e9)) } else { None }
}

/// Parses a time of nginx: whole numbers of units that become shorter, such as `1m30s`, and a bare number of seconds at
/// the end. Limits of time have no months and years.
pub(crate) fn nginx(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 6] =
        [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("ms", 1), ("m", 60_000), ("s", 1_000)];
    let (mut rest, mut sum, mut shortest) = (text, 0_u64, u64::MAX);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = UNITS.iter().find(|(unit, _)| rest.starts_with(unit));
        let (unit, length) = match unit {
            Some(unit) => *unit,
            None if rest.is_empty() => ("", 1_000),
            None => return None,
        };
        if length >= shortest && !unit.is_empty() {
            return None;
        }
        shortest = length;
        sum = sum.checked_add(number.checked_mul(length)?)?;
        rest = rest[unit.len()..].trim_start();
    }
    Some(Duration::from_millis(sum))
}

/// Parses a time of `HAProxy`: `5s`, and a bare number of milliseconds.
pub(crate) fn haproxy(text: &str) -> Option<Duration> {
    sum(text, HAPROXY, Bare::Alone(1e6))
}

/// Parses a duration of Spring: `500ms`, `PT1.5S`, and a bare number of milliseconds.
pub(crate) fn spring(text: &str) -> Option<Duration> {
    let Some(iso) = text.strip_prefix(['P', 'p']) else {
        return sum(text, SPRING, Bare::Alone(1e6));
    };
    let upper = iso.to_ascii_uppercase();
    let (days, time) = upper.split_once('T').unwrap_or((&upper, ""));
    let part = |text: &str, units| if text.is_empty() { Some(Duration::ZERO) } else { sum(text, units, Bare::Invalid) };
    if upper.is_empty() {
        return None;
    }
    part(days, ISO_DAYS)?.checked_add(part(time, ISO_TIME)?)
}

/// Parses a `TimeSpan` of .NET: `[d.]hh:mm[:ss[.fffffff]]`; a bare number is a number of days.
pub(crate) fn time_span(text: &str) -> Option<Duration> {
    const DAY: f64 = 86_400e9;
    let fields: Vec<&str> = text.trim().split(':').collect();
    let whole = |text: &str| text.parse::<u32>().ok().map(f64::from);
    let (days, hours, minutes, seconds) = match fields[..] {
        [days] => (whole(days)?, 0.0, 0.0, 0.0),
        [hours, minutes] => with_days(hours, whole(minutes)?, 0.0)?,
        [hours, minutes, seconds] => {
            let seconds: f64 = seconds.parse().ok().filter(|seconds| (0.0..60.0).contains(seconds))?;
            with_days(hours, whole(minutes)?, seconds)?
        }
        _ => return None,
    };
    if hours > 23.0 || minutes > 59.0 {
        return None;
    }
    nanoseconds(days * DAY + hours * 3_600e9 + minutes * 60e9 + seconds * 1e9)
}

/// Separates the days before the hours.
fn with_days(hours: &str, minutes: f64, seconds: f64) -> Option<(f64, f64, f64, f64)> {
    let (days, hours) = hours.split_once('.').unwrap_or(("0", hours));
    Some((days.parse::<u32>().ok()?.into(), hours.parse::<u32>().ok()?.into(), minutes, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_their_systems_read_them() {
        let ms = |text: &str, parse: fn(&str) -> Option<Duration>| parse(text).map(|length| length.as_millis());
        for (text, wanted) in [
            ("1h30m", Some(5_400_000)),
            ("0.25s", Some(250)),
            ("500ms", Some(500)),
            ("0", Some(0)),
            ("5", None),
            ("", None),
            ("-1s", None),
            ("1 s", None),
        ] {
            assert_eq!(ms(text, go), wanted, "{text}");
        }
        for (text, wanted) in [
            ("5", Some(5_000)),
            ("1min 30s", Some(90_000)),
            ("100ms", Some(100)),
            ("2 M", Some(5_259_600_000)),
            ("soon", None),
        ] {
            assert_eq!(ms(text, systemd), wanted, "{text}");
        }
        for (text, wanted) in [
            ("60", Some(60_000)),
            ("1m30s", Some(90_000)),
            ("1m 30", Some(90_000)),
            ("1d", Some(86_400_000)),
            ("500ms", Some(500)),
            ("1.5s", None),
            ("30s1m", None),
            ("1M", None),
            ("", None),
            ("99999999999999999999w", None),
        ] {
            assert_eq!(ms(text, nginx), wanted, "{text}");
        }
        for (text, wanted) in [("5000", Some(5_000)), ("5s", Some(5_000)), ("1m", Some(60_000))] {
            assert_eq!(ms(text, haproxy), wanted, "{text}");
        }
        for (text, wanted) in [
            ("500", Some(500)),
            ("PT0.5S", Some(500)),
            ("PT1M", Some(60_000)),
            ("P1DT1H", Some(90_000_000)),
            ("2s", Some(2_000)),
            ("P", None),
        ] {
            assert_eq!(ms(text, spring), wanted, "{text}");
        }
        for (text, wanted) in [
            ("00:00:02", Some(2_000)),
            ("5", Some(432_000_000)),
            ("1.02:03:04.5", Some(93_784_500)),
            ("00:01", Some(60_000)),
            ("25:00", None),
            ("1:2:3:4", None),
        ] {
            assert_eq!(ms(text, time_span), wanted, "{text}");
        }
    }
}
