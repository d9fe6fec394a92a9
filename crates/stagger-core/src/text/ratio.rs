use core::str::FromStr;

use super::duration::scaled;
use super::{ParseError, Problem};
use crate::numbers::ratio::Ratio;

impl FromStr for Ratio {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), 10_000),
            None => (text, 1_000_000),
        };
        let problem = match scaled(number, unit) {
            Ok(millionths @ 0..=1_000_000) => return Ok(Self::millionths(millionths as u32)),
            Err(Problem::DurationTooFine) => Problem::RatioTooFine,
            _ => Problem::Ratio,
        };
        Err(ParseError::new(problem, text))
    }
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
