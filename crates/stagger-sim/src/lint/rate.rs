use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

use super::ParseValueError;

/// A rate per second, finite and greater than 0.
///
/// Text forms: `500/s`, `30/min`, `10/h`, or a bare number per second; `10k` is ten thousand, `2M` two million.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// Creates a rate; returns `None` unless it is finite and greater than 0.
    #[must_use]
    pub fn per_second(rate: f64) -> Option<Self> {
        (rate > 0.0 && rate.is_finite()).then_some(Self(rate))
    }

    /// Returns the rate per second.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

impl FromStr for Rate {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, ParseValueError> {
        const KNOWN: &str = "a rate above 0, like 500/s, 30/min or 2k/s";
        let (number, seconds) = match text.split_once('/') {
            None | Some((_, "s" | "sec" | "second")) => (text.split('/').next().unwrap_or(text), 1.0),
            Some((number, "m" | "min" | "minute")) => (number, 60.0),
            Some((number, "h" | "hour")) => (number, 3_600.0),
            Some(_) => return Err(ParseValueError::new(text, KNOWN)),
        };
        scaled(number)
            .and_then(|number| Self::per_second(number / seconds))
            .ok_or_else(|| ParseValueError::new(text, KNOWN))
    }
}

/// Parses a number of clients or requests: `10000`, `10_000`, `10k`, `1.5M`.
///
/// # Errors
/// Returns [`ParseValueError`] unless it is a whole number of at least 1.
pub fn parse_count(text: &str) -> Result<NonZeroU64, ParseValueError> {
    let plain = || text.replace('_', "").parse().ok();
    let short = || {
        let number = scaled(text)?;
        // Below 2^53 an `f64` represents every whole number.
        let whole = number.fract() == 0.0 && (1.0..9e15).contains(&number);
        if whole { NonZeroU64::new(number as u64) } else { None }
    };
    plain().or_else(short).ok_or_else(|| ParseValueError::new(text, "a whole number of at least 1, like 10000 or 10k"))
}

/// Parses a decimal number with an optional suffix `k` or `M`: `2.5`, `600`, `10k`.
///
/// # Errors
/// Returns [`ParseValueError`] if it is not a number; signs, `inf` and `nan` are rejected.
pub fn parse_number(text: &str) -> Result<f64, ParseValueError> {
    scaled(text).ok_or_else(|| ParseValueError::new(text, "a number, like 2.5, 600 or 10k"))
}

/// Parses a decimal number with an optional suffix `k` or `M`.
fn scaled(text: &str) -> Option<f64> {
    let (number, times) = match text.trim().as_bytes() {
        [.., b'k' | b'K'] => (&text.trim()[..text.trim().len() - 1], 1e3),
        [.., b'M'] => (&text.trim()[..text.trim().len() - 1], 1e6),
        _ => (text.trim(), 1.0),
    };
    // `parse` alone would accept `inf`, `nan` and signs.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_'));
    if digits { number.replace('_', "").parse::<f64>().ok().map(|number| number * times) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_parsed_in_all_units() {
        for (text, want) in [
            ("500/s", Some(500.0)),
            ("500", Some(500.0)),
            ("30/min", Some(0.5)),
            ("3600/h", Some(1.0)),
            ("2k/s", Some(2_000.0)),
            ("1.5M", Some(1_500_000.0)),
            ("0/s", None),
            ("-1/s", None),
            ("nan", None),
            ("inf", None),
            ("500/fortnight", None),
            ("/s", None),
            ("", None),
            ("k", None),
        ] {
            assert_eq!(text.parse::<Rate>().ok().map(Rate::get), want, "{text:?}");
        }
    }

    #[test]
    fn a_rate_is_positive_and_finite() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Rate::per_second(rate), None, "{rate}");
        }
        assert_eq!(Rate::per_second(f64::MIN_POSITIVE).map(Rate::get), Some(f64::MIN_POSITIVE));
    }

    #[test]
    fn numbers_may_be_zero_or_fractional_but_not_signed() {
        for (text, want) in
            [("0", Some(0.0)), ("2.5", Some(2.5)), ("10k", Some(1e4)), ("-1", None), ("nan", None), ("", None)]
        {
            assert_eq!(parse_number(text).ok(), want, "{text:?}");
        }
    }

    #[test]
    fn counts_are_whole_numbers() {
        for (text, want) in [
            ("10000", Some(10_000)),
            ("10_000", Some(10_000)),
            ("10k", Some(10_000)),
            ("1.5M", Some(1_500_000)),
            ("1.5", None),
            ("0", None),
            ("0k", None),
            ("-3", None),
            ("1e3", None),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("ten", None),
        ] {
            assert_eq!(parse_count(text).ok().map(NonZeroU64::get), want, "{text:?}");
        }
    }
}
