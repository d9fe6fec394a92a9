use core::str::FromStr;

use super::{ParseError, Problem};
use crate::numbers::ratio::Ratio;

impl FromStr for Ratio {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = |problem| ParseError::new(problem, text);
        let (number, per) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), 4),
            None => (text, 6),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return Err(error(Problem::Ratio));
        }
        let mut millionths: u64 = 0;
        for digit in whole.bytes() {
            millionths = millionths.saturating_mul(10).saturating_add(digit_value(digit).ok_or(error(Problem::Ratio))?);
        }
        let mut left = per;
        for digit in fraction.bytes() {
            let digit = digit_value(digit).ok_or(error(Problem::Ratio))?;
            if left == 0 {
                if digit != 0 {
                    return Err(error(Problem::RatioTooFine));
                }
                continue;
            }
            left -= 1;
            millionths = millionths.saturating_mul(10).saturating_add(digit);
        }
        let millionths = millionths.saturating_mul(10_u64.pow(left));
        match u32::try_from(millionths) {
            Ok(millionths) if millionths <= 1_000_000 => Ok(Self::millionths(millionths)),
            _ => Err(error(Problem::Ratio)),
        }
    }
}

fn digit_value(byte: u8) -> Option<u64> {
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn text_parses_exactly_or_not_at_all() {
        for (text, want) in [
            ("0", Some(0)),
            ("0%", Some(0)),
            ("1", Some(1_000_000)),
            ("100%", Some(1_000_000)),
            ("20 %", Some(200_000)),
            (".5", Some(500_000)),
            ("0.10000000", Some(100_000)),
            ("12.3456%", Some(123_456)),
            ("12.34567%", None),
            ("1.1", None),
            ("101%", None),
            ("99999999999999999999999", None),
            ("", None),
            ("%", None),
            (".", None),
            ("-1", None),
            ("1e-3", None),
            ("NaN", None),
        ] {
            assert_eq!(text.parse::<Ratio>().ok().map(Ratio::as_millionths), want, "{text:?}");
        }
    }

    #[test]
    fn display_round_trips_for_every_millionth() {
        for n in (0..=1_000_000).step_by(7).chain([1_000_000]) {
            let ratio = Ratio::millionths(n);
            assert_eq!(ratio.to_string().parse(), Ok(ratio));
        }
    }
}
