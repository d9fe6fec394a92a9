//! Amounts as people type them, on command lines and in files: counts, decimal numbers and rates.

use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

use super::Outside;
use super::error::QuotedWord;

/// A rate per second, finite and greater than 0.
///
/// Text forms: `500/s`, `30/min`, `10/h`, or a bare number per second; `10k` is ten thousand, `2M` two million.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// Creates a rate; returns `None` unless it is finite and greater than 0.
    #[must_use]
    pub fn per_second(rate: f64) -> Option<Self> {
        if rate > 0.0 && rate.is_finite() { Some(Self(rate)) } else { None }
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
        let invalid = ParseValueError::new(text, "a rate above 0, like 500/s, 30/min or 2k/s");
        let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
        let seconds = match unit {
            "s" | "sec" | "second" => 1.0,
            "m" | "min" | "minute" => 60.0,
            "h" | "hour" => 3_600.0,
            _ => return Err(invalid),
        };
        match scaled(number) {
            Some(number) => Self::per_second(number / seconds).ok_or(invalid),
            None => Err(invalid),
        }
    }
}

/// Parses a number of clients or requests: `10000`, `10_000`, `10k`, `1.5M`.
///
/// # Errors
/// Returns [`ParseValueError`] unless it is a whole number of at least 1.
pub fn parse_count(text: &str) -> Result<NonZeroU64, ParseValueError> {
    let invalid = ParseValueError::new(text, "a whole number of at least 1, like 10000 or 10k");
    let count = match (whole(text), scaled(text)) {
        (Some(count), _) => count,
        (None, Some(number)) => exactly(number).ok_or(invalid)?,
        (None, None) => return Err(invalid),
    };
    NonZeroU64::new(count).ok_or(invalid)
}

/// Parses a decimal number with an optional suffix `k` or `M`: `2.5`, `600`, `10k`.
///
/// # Errors
/// Returns [`ParseValueError`] if it is not a number; signs, `inf` and `nan` are rejected.
pub fn parse_number(text: &str) -> Result<f64, ParseValueError> {
    scaled(text).ok_or(ParseValueError::new(text, "a number, like 2.5, 600 or 10k"))
}

/// A value that cannot be parsed, with the values that are expected.
///
/// It holds a copy of the value, at most 40 bytes, so it can outlive the text and needs no allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseValueError {
    word: QuotedWord,
    expected: &'static str,
}

impl ParseValueError {
    /// Creates an error that quotes `word` and ends with "expected …".
    #[must_use]
    pub fn new(word: &str, expected: &'static str) -> Self {
        Self { word: QuotedWord::new(word), expected }
    }

    /// Returns what is accepted, as the end of "expected …", for a caller that shows the value itself.
    #[must_use]
    pub const fn expected(&self) -> &'static str {
        self.expected
    }
}

impl fmt::Display for ParseValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.as_str();
        write!(f, "invalid value `{}`; expected {}", Outside(word), self.expected)?;
        match small_m(word) {
            Some((digits, unit)) => write!(f, "; did you mean `{digits}M{unit}`?"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for ParseValueError {}

/// Splits a number that ends with an `m`, perhaps before a unit of time, into what stands before and after the `m`.
///
/// Elsewhere `m` is a minute, so it is no suffix of a number here: millions are meant.
fn small_m(word: &str) -> Option<(&str, &str)> {
    let (number, unit) = match word.find('/') {
        Some(at) => word.split_at(at),
        None => (word, ""),
    };
    let digits = number.strip_suffix('m')?;
    scaled(digits).map(|_| (digits, unit))
}

/// Parses a whole number, exact up to `u64::MAX`; underscores may stand anywhere.
fn whole(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let mut number = None;
    for byte in digits.bytes().filter(|byte| *byte != b'_') {
        if !byte.is_ascii_digit() {
            return None;
        }
        let tens = number.unwrap_or(0_u64).checked_mul(10)?;
        number = Some(tens.checked_add(u64::from(byte - b'0'))?);
    }
    number
}

/// Returns the number if it is whole. Below 2^53 an `f64` represents every whole number.
fn exactly(number: f64) -> Option<u64> {
    let whole = number as u64;
    let is_whole = number - whole as f64 == 0.0;
    if is_whole && (1.0..9e15).contains(&number) { Some(whole) } else { None }
}

/// Parses a decimal number and its suffix.
fn scaled(text: &str) -> Option<f64> {
    let text = text.trim();
    let (number, factor) = if let Some(thousands) = text.strip_suffix(['k', 'K']) {
        (thousands, 1e3)
    } else if let Some(millions) = text.strip_suffix('M') {
        (millions, 1e6)
    } else {
        (text, 1.0)
    };
    decimal(number).map(|number| number * factor)
}

fn decimal(text: &str) -> Option<f64> {
    // `parse` alone would accept `inf`, `nan`, signs and exponents.
    if !text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_')) {
        return None;
    }
    if !text.contains('_') {
        return text.parse().ok();
    }
    // `parse` knows no underscores, and there is no allocator to write the number without them.
    let mut digits = [0; 64];
    let mut len = 0;
    for byte in text.bytes().filter(|byte| *byte != b'_') {
        *digits.get_mut(len)? = byte;
        len += 1;
    }
    core::str::from_utf8(&digits[..len]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

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
        for (text, want) in [
            ("0", Some(0.0)),
            ("2.5", Some(2.5)),
            ("10k", Some(1e4)),
            ("1_000.5", Some(1_000.5)),
            ("-1", None),
            ("+1", None),
            ("1e3", None),
            ("nan", None),
            ("", None),
            ("_", None),
        ] {
            assert_eq!(parse_number(text).ok(), want, "{text:?}");
        }
    }

    #[test]
    fn counts_are_whole_numbers() {
        for text in ["10000", "10_000", "10k", "+10000", "1_0k"] {
            assert_eq!(parse_count(text).map(NonZeroU64::get), Ok(10_000), "{text:?}");
        }
        for (text, want) in [("1.5M", 1_500_000), ("18446744073709551615", u64::MAX)] {
            assert_eq!(parse_count(text).map(NonZeroU64::get), Ok(want), "{text:?}");
        }
        for text in ["1.5", "0", "0k", "-3", "1e3", "18446744073709551616", "ten", "", "_", "+"] {
            assert!(parse_count(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_small_m_is_answered_with_the_suffix_of_millions() {
        for (error, meant) in [
            (parse_count("1m").unwrap_err(), Some("did you mean `1M`?")),
            (parse_count("1.5m").unwrap_err(), Some("did you mean `1.5M`?")),
            ("2m/s".parse::<Rate>().unwrap_err(), Some("did you mean `2M/s`?")),
            (parse_count("m").unwrap_err(), None),
            (parse_count("5x").unwrap_err(), None),
        ] {
            let text = error.to_string();
            assert_eq!(text.contains("did you mean"), meant.is_some(), "{text}");
            assert!(text.ends_with(meant.unwrap_or_default()), "{text}");
        }
    }
}
