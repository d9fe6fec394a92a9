use core::fmt;
use core::time::Duration;

use super::{ParseError, Problem};
use crate::numbers::instant::{LONGEST_NANOS, nanos};
use crate::numbers::message::Message;

/// A length of time that is printed in its shortest exact form: `500ms`, `1.5s`, `1m30s`, `2h`, `0s`.
///
/// [`parse_duration`] reads it back to the same length. Anything longer than 292 years is printed as 292 years. With a
/// precision it is rounded for readers instead: `{:.2}` keeps two decimals of the unit that it is printed in.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::text::Compact;
///
/// assert_eq!(Compact(Duration::from_millis(90_500)).to_string(), "1m30.5s");
/// assert_eq!(format!("{:.2}", Compact(Duration::from_nanos(1_234_567))), "1.23ms");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Compact(pub Duration);

impl fmt::Display for Compact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut length = nanos(self.0);
        if let Some(decimals) = f.precision() {
            length = round(length, decimals);
        }
        let text = Message::<64>::new().duration(length);
        // The precision was for the number; `pad` would cut the text with it.
        match f.width() {
            Some(width) if f.align() == Some(fmt::Alignment::Right) => write!(f, "{:>width$}", text.as_str()),
            Some(width) => write!(f, "{:<width$}", text.as_str()),
            None => f.write_str(text.as_str()),
        }
    }
}

/// Rounds `length` to `decimals` decimals of the unit that it is printed in.
fn round(length: u64, decimals: usize) -> u64 {
    let places = u32::try_from(decimals).unwrap_or(u32::MAX).min(9);
    let unit: u64 = match length {
        0..1_000 => 1,
        1_000..1_000_000 => 1_000,
        1_000_000..1_000_000_000 => 1_000_000,
        _ => 1_000_000_000,
    };
    let step = (unit / 10_u64.pow(places)).max(1);
    // Rounding can carry into the next unit (999.9996 ms), but only to exactly one of it.
    length.saturating_add(step / 2) / step * step
}

/// Parses a length of time: `500ms`, `1.5s`, `1m30s`, `2h`, `1d`, or a bare number of seconds. `inf` and `none` give
/// `None`: no limit.
///
/// Units: `ns`, `us` (`µs`), `ms`, `s`, `m`, `h`, `d` and their usual longer spellings. Parts are added. Decimals are
/// exact to the nanosecond. Finer decimals, negative lengths and lengths above 292 years are rejected.
///
/// # Errors
/// [`ParseError`] quotes the text and says what is accepted.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::text::parse_duration;
///
/// assert_eq!(parse_duration("1m30s")?, Some(Duration::from_secs(90)));
/// assert_eq!(parse_duration("0.25")?, Some(Duration::from_millis(250)));
/// assert_eq!(parse_duration("inf")?, None);
/// assert!(parse_duration("1 fortnight").is_err());
/// # Ok::<(), stagger_core::text::ParseError>(())
/// ```
pub fn parse_duration(text: &str) -> Result<Option<Duration>, ParseError> {
    let whole = text.trim();
    if matches!(whole, "inf" | "none" | "infinite" | "never") {
        return Ok(None);
    }
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    if let Some(rest) = whole.strip_prefix('-') {
        if rest.starts_with(is_number) {
            return Err(ParseError::new(Problem::DurationNegative, text));
        }
    }
    if whole.ends_with(',') {
        return Err(ParseError::new(Problem::Comma, text));
    }
    let mut rest = whole;
    let mut total: u64 = 0;
    let mut is_first = true;
    while !rest.is_empty() {
        let number_end = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_end);
        let after = after.trim_start();
        let unit_end = after.find(|c| is_number(c) || c.is_whitespace()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        rest = after.trim_start();
        // A bare number is seconds only if it stands alone: `1m30` would be ambiguous.
        let alone = is_first && rest.is_empty();
        let problem = match (number, unit) {
            ("", _) => Problem::Duration,
            (_, "") => Problem::DurationNoUnit,
            _ => Problem::DurationUnit,
        };
        let unit = unit_nanos(unit, alone).ok_or(ParseError::new(problem, text))?;
        let part = scaled(number, unit).map_err(|problem| ParseError::new(problem, text))?;
        total = total.saturating_add(part);
        if total > LONGEST_NANOS {
            return Err(ParseError::new(Problem::DurationTooLong, text));
        }
        is_first = false;
    }
    if is_first {
        return Err(ParseError::new(Problem::Duration, text));
    }
    Ok(Some(Duration::from_nanos(total)))
}

fn unit_nanos(unit: &str, alone: bool) -> Option<u64> {
    Some(match unit {
        "" if alone => 1_000_000_000,
        "ns" | "nsec" | "nanos" => 1,
        // The micro sign and the Greek letter, which look alike.
        "us" | "µs" | "μs" | "usec" | "micros" => 1_000,
        "ms" | "msec" | "millis" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000_000_000,
        "d" | "day" | "days" => 86_400_000_000_000,
        _ => return None,
    })
}

/// Returns the decimal `number` times `unit`, exact.
pub(super) fn scaled(number: &str, unit: u64) -> Result<u64, Problem> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_decimal = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_decimal {
        return Err(Problem::Duration);
    }
    let digits =
        |text: &str| text.bytes().try_fold(0_u64, |n, digit| n.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    let whole = digits(whole).ok_or(Problem::DurationTooLong)?.checked_mul(unit).ok_or(Problem::DurationTooLong)?;
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        return Ok(whole);
    }
    // A day, the largest unit, allows at most 9 + 4 decimals to be exact; sixteen digits are beyond every unit.
    let decimals = u32::try_from(fraction.len()).map_err(|_| Problem::DurationTooFine)?;
    let scale = 10_u64.checked_pow(decimals).ok_or(Problem::DurationTooFine)?;
    let part = u128::from(digits(fraction).ok_or(Problem::DurationTooFine)?) * u128::from(unit);
    if part % u128::from(scale) != 0 {
        return Err(Problem::DurationTooFine);
    }
    let part = u64::try_from(part / u128::from(scale)).map_err(|_| Problem::DurationTooLong)?;
    whole.checked_add(part).ok_or(Problem::DurationTooLong)
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn durations_parse_exactly_or_not_at_all() {
        let ns = Duration::from_nanos;
        for (text, want) in [
            ("500ms", Some(ns(500_000_000))),
            ("1.5s", Some(ns(1_500_000_000))),
            ("1m30s", Some(ns(90_000_000_000))),
            ("1m 30s", Some(ns(90_000_000_000))),
            (" 2 h ", Some(ns(7_200_000_000_000))),
            ("5", Some(ns(5_000_000_000))),
            ("0.000000001", Some(ns(1))),
            (".5s", Some(ns(500_000_000))),
            ("5.s", Some(ns(5_000_000_000))),
            ("1.50000000000000000000000s", Some(ns(1_500_000_000))),
            ("0.0000000001s", None),
            ("1.5ns", None),
            ("1m30", None),
            ("30s1", None),
            ("1e3s", None),
            ("-1s", None),
            ("+1s", None),
            ("1..5s", None),
            ("1.2.3s", None),
            (".", None),
            ("", None),
            ("   ", None),
            ("s", None),
            ("1 fortnight", None),
            ("1S", None),
            ("106751d", Some(ns(9_223_286_400_000_000_000))),
            ("106752d", None),
            ("99999999999999999999s", None),
            ("nan", None),
        ] {
            assert_eq!(parse_duration(text).ok().flatten(), want, "{text:?}");
        }
        assert_eq!(parse_duration("inf"), Ok(None));
    }

    #[test]
    fn the_error_says_what_is_wrong_with_a_length() {
        for (text, want) in [
            ("1h30", "`1h30` has a number without a unit"),
            ("1 30s", "`1 30s` has a number without a unit"),
            ("1 fortnight", "has a unit that is not known"),
            ("1S", "has a unit that is not known"),
            ("soon", "`soon` is not a length of time"),
            ("s", "`s` is not a length of time"),
            ("-1s", "`-1s` is negative"),
            ("1s,", "`1s,` has a stray comma"),
        ] {
            let error = parse_duration(text).unwrap_err().to_string();
            assert!(error.contains(want), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_compact_form_is_exact() {
        for (nanos, want) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5us"),
            (200_000, "200us"),
            (500_000_000, "500ms"),
            (1_000_000_001, "1.000000001s"),
            (60_000_000_000, "1m"),
            (90_000_000_000, "1m30s"),
            (60_000_000_500, "1m0.0000005s"),
            (86_400_000_000_000, "1d"),
            (90_061_000_000_000, "1d1h1m1s"),
        ] {
            assert_eq!(Compact(Duration::from_nanos(nanos)).to_string(), want);
            assert_eq!(parse_duration(want), Ok(Some(Duration::from_nanos(nanos))));
        }
    }

    #[test]
    fn a_precision_rounds_to_decimals_of_the_unit() {
        for (nanos, decimals, want) in [
            (1_234, 1, "1.2us"),
            (1_260, 1, "1.3us"),
            (999_960, 1, "1ms"),
            (1_234_567, 1, "1.2ms"),
            (1_234_567, 2, "1.23ms"),
            (1_234_567_890, 1, "1.2s"),
            (999_999_600, 2, "1s"),
            (719_600_000, 0, "720ms"),
            (1_940_000_000, 1, "1.9s"),
            (61_940_000_000, 0, "1m2s"),
            (59_999_900_000, 1, "1m"),
            (7, 1, "7ns"),
            (3, 2, "3ns"),
        ] {
            assert_eq!(format!("{:.*}", decimals, Compact(Duration::from_nanos(nanos))), want);
        }
        assert_eq!(
            format!("{:>8}|{:8}|", Compact(Duration::from_secs(1)), Compact(Duration::from_secs(2))),
            "      1s|2s      |"
        );
    }
}
