use core::fmt;
use core::str::FromStr;

use super::{Compact, ParseError, Problem, parse_duration};
use crate::policy::hint_mode::HintMode;

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
