//! The text of ratios, jitters and hint modes.

use core::fmt;
use core::str::FromStr;

use super::duration::scaled;
use super::{Compact, ParseError, Problem, parse_duration};
use crate::numbers::ratio::Ratio;
use crate::policy::{HintMode, Jitter};
use crate::profile::Profile;

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

/// The jitters that have a name of their own, and no value.
const NAMED: [(&str, Jitter); 4] =
    [("none", Jitter::None), ("full", Jitter::Full), ("equal", Jitter::Equal), ("decorrelated", Jitter::Decorrelated)];

/// Returns the names of the jitters that have no value, for completions.
pub fn jitter_names() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|(name, _)| *name)
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Full => f.write_str("full"),
            Self::Equal => f.write_str("equal"),
            Self::Decorrelated => f.write_str("decorrelated"),
            Self::Factor(share) => write!(f, "±{share}"),
            Self::Added(length) => write!(f, "add:{}", Compact(*length)),
            Self::Profile(jitter) => f.write_str(jitter.name()),
        }
    }
}

impl FromStr for Jitter {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if let Some((_, jitter)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(*jitter);
        }
        if let Some(length) = text.strip_prefix("add:") {
            let length = parse_duration(length)?.ok_or(ParseError::new(Problem::Limitless, "add"))?;
            return Ok(Self::Added(length));
        }
        let share = match text.strip_prefix('±') {
            Some(share) => share,
            None => text.strip_prefix("+-").unwrap_or(text),
        };
        let is_number = share.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        match share.parse() {
            Ok(share) => Ok(Self::Factor(share)),
            Err(error) if is_number => Err(error),
            // Only the jitters of profiles go by a profile's name; every other jitter has a word of its own.
            Err(_) => match Profile::named(text).map(|profile| profile.policy().jitter()) {
                Some(jitter @ Self::Profile(_)) => Ok(jitter),
                _ => Err(ParseError::new(Problem::Jitter, text)),
            },
        }
    }
}

impl fmt::Display for HintMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::AtLeast => f.write_str("at-least"),
            Self::Exact => f.write_str("exact"),
            Self::Clamp(d) => write!(f, "clamp:{}", Compact(d)),
        }
    }
}

impl FromStr for HintMode {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "at-least" => Ok(Self::AtLeast),
            "exact" => Ok(Self::Exact),
            _ => match text.strip_prefix("clamp:").map(parse_duration) {
                Some(Ok(Some(d))) => Ok(Self::Clamp(d)),
                Some(Err(error)) => Err(error),
                _ => Err(ParseError::new(Problem::HintMode, text)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
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

    #[test]
    fn text_round_trips() {
        for (text, want) in [
            ("none", Jitter::None),
            ("full", Jitter::Full),
            ("equal", Jitter::Equal),
            ("decorrelated", Jitter::Decorrelated),
            ("±20%", Jitter::Factor(Ratio::percent(20))),
            ("add:500ms", Jitter::Added(Duration::from_millis(500))),
        ] {
            assert_eq!(text.parse(), Ok(want));
            assert_eq!(want.to_string(), text);
        }
        for text in ["+-20%", "20%", "0.2", "±0.2", ".2"] {
            assert_eq!(text.parse(), Ok(Jitter::Factor(Ratio::percent(20))), "{text}");
        }
    }

    #[test]
    fn an_invalid_jitter_and_an_invalid_share_have_different_errors() {
        assert!("ful".parse::<Jitter>().unwrap_err().to_string().contains("use full, equal"));
        assert!("add:soon".parse::<Jitter>().unwrap_err().to_string().contains("is not a length of time"));
        assert!("add:inf".parse::<Jitter>().unwrap_err().to_string().contains("must have a length"));
        assert!("150%".parse::<Jitter>().unwrap_err().to_string().contains("from 0 to 1"));
    }
}
