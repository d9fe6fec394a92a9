use core::fmt;
use core::str::FromStr;

use super::{Compact, ParseError, Problem, parse_duration};
use crate::policy::jitter::Jitter;
use crate::profile::Profile;

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
        Ok(match text {
            "none" => Self::None,
            "full" => Self::Full,
            "equal" => Self::Equal,
            "decorrelated" => Self::Decorrelated,
            _ if text.starts_with("add:") => {
                let length = &text["add:".len()..];
                Self::Added(parse_duration(length)?.ok_or(ParseError::new(Problem::Limitless, "add"))?)
            }
            _ => {
                let share = text.strip_prefix('±').or_else(|| text.strip_prefix("+-")).unwrap_or(text);
                let is_number = share.starts_with(|c: char| c.is_ascii_digit() || c == '.');
                match share.parse() {
                    Ok(share) => Self::Factor(share),
                    Err(error) if is_number => return Err(error),
                    // Only the jitters of profiles go by a profile's name; every other jitter has a word of its own.
                    Err(_) => match Profile::named(text).map(|profile| profile.policy().jitter()) {
                        Some(jitter @ Self::Profile(_)) => jitter,
                        _ => return Err(ParseError::new(Problem::Jitter, text)),
                    },
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::string::ToString;

    use super::*;
    use crate::numbers::ratio::Ratio;

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
