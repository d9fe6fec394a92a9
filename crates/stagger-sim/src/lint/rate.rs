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
        let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
        let seconds = match unit {
            "s" | "sec" | "second" => 1.0,
            "m" | "min" | "minute" => 60.0,
            "h" | "hour" => 3_600.0,
            _ => return Err(ParseValueError::new(text, KNOWN)),
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
    // Below 2^53 an `f64` represents every whole number.
    let whole = |number: f64| (number.fract() == 0.0 && (1.0..9e15).contains(&number)).then_some(number as u64);
    let number = text.replace('_', "").parse().ok().or_else(|| scaled(text).and_then(whole));
    let known = "a whole number of at least 1, like 10000 or 10k";
    number.and_then(NonZeroU64::new).ok_or_else(|| ParseValueError::new(text, known))
}

/// Parses a decimal number with an optional suffix `k` or `M`: `2.5`, `600`, `10k`.
///
/// # Errors
/// Returns [`ParseValueError`] if it is not a number; signs, `inf` and `nan` are rejected.
pub fn parse_number(text: &str) -> Result<f64, ParseValueError> {
    scaled(text).ok_or_else(|| ParseValueError::new(text, "a number, like 2.5, 600 or 10k"))
}

fn scaled(text: &str) -> Option<f64> {
    let text = text.trim();
    let thousands = text.strip_suffix(['k', 'K']).map(|number| (number, 1e3));
    let scaled = thousands.or_else(|| text.strip_suffix('M').map(|number| (number, 1e6)));
    let (number, times) = scaled.unwrap_or((text, 1.0));
    // `parse` alone would accept `inf`, `nan` and signs.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_'));
    if digits { number.replace('_', "").parse::<f64>().ok().map(|number| number * times) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_parsed_in_all_units() {
        for (text, want) in
            [("500/s", 500.0), ("500", 500.0), ("30/min", 0.5), ("3600/h", 1.0), ("2k/s", 2e3), ("1.5M", 1.5e6)]
        {
            assert_eq!(text.parse().map(Rate::get), Ok(want), "{text:?}");
        }
        for text in ["0/s", "-1/s", "nan", "inf", "500/fortnight", "/s", "", "k"] {
            assert!(text.parse::<Rate>().is_err(), "{text:?}");
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
        for text in ["10000", "10_000", "10k"] {
            assert_eq!(parse_count(text).map(NonZeroU64::get), Ok(10_000), "{text:?}");
        }
        for (text, want) in [("1.5M", 1_500_000), ("18446744073709551615", u64::MAX)] {
            assert_eq!(parse_count(text).map(NonZeroU64::get), Ok(want), "{text:?}");
        }
        for text in ["1.5", "0", "0k", "-3", "1e3", "18446744073709551616", "ten"] {
            assert!(parse_count(text).is_err(), "{text:?}");
        }
    }
}
