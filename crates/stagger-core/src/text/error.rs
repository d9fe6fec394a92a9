use core::fmt;

use crate::policy::PolicyError;

/// Why a text could not be read, which part of it, and what would be understood instead.
///
/// It owns a short copy of the offending word, so that it can be kept when the text is gone, and without allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParseError {
    problem: Problem,
    word: Word,
}

/// What is wrong with a word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Problem {
    Duration,
    DurationUnit,
    DurationTooLong,
    DurationTooFine,
    Ratio,
    RatioTooFine,
    Number,
    Multiplier,
    Jitter,
    HintMode,
    Shape,
    /// The word is not a setting; the nearest one that is.
    Key(&'static str),
    NoValue,
    Twice,
    /// The setting has no meaning for this shape of backoff.
    NotForShape(&'static str),
    /// The shape cannot do without this setting.
    Missing(&'static str),
    Limitless,
    TooLong,
    NoUnit,
    Reservation,
    /// Every word was understood, and together they make no sense.
    Policy(PolicyError),
}

impl ParseError {
    pub(crate) fn new(problem: Problem, word: &str) -> Self {
        Self { problem, word: Word::new(word) }
    }

    /// The word that was not understood, shortened to 40 bytes.
    #[must_use]
    pub fn word(&self) -> &str {
        self.word.as_str()
    }

    /// The faults of the policy, if every word was understood and only the whole made no sense.
    #[must_use]
    pub fn policy_error(&self) -> Option<&PolicyError> {
        match &self.problem {
            Problem::Policy(error) => Some(error),
            _ => None,
        }
    }
}

impl From<PolicyError> for ParseError {
    fn from(error: PolicyError) -> Self {
        Self::new(Problem::Policy(error), "")
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.as_str();
        match self.problem {
            Problem::Duration => {
                write!(f, "`{word}` is not a length of time; write it like 500ms, 1.5s, 1m30s or 2h")
            }
            Problem::DurationUnit => {
                write!(f, "`{word}` has a unit that is not known; use ns, us, ms, s, m, h or d after each number")
            }
            Problem::DurationTooLong => {
                write!(f, "`{word}` is longer than 292 years; use inf or none where no limit is meant")
            }
            Problem::DurationTooFine => write!(f, "`{word}` is finer than a nanosecond; round it"),
            Problem::Ratio => write!(f, "`{word}` is not a share; write it as 20% or 0.2, from 0 to 1"),
            Problem::RatioTooFine => {
                write!(f, "`{word}` is not a whole number of millionths; round it to six decimals")
            }
            Problem::Number => write!(f, "`{word}` is not a whole number; write one from 1 to 4294967295, or inf"),
            Problem::Multiplier => {
                write!(f, "`{word}` is not a number; write a multiplier of 1 or more, like 2 or 1.5")
            }
            Problem::Jitter => {
                write!(f, "`{word}` is not a jitter; use full, equal, decorrelated, none, or a share like ±20%")
            }
            Problem::HintMode => {
                write!(f, "`{word}` does not say what to do with a server's hint; use at-least, exact or clamp:5s")
            }
            Problem::Shape => {
                write!(
                    f,
                    "`{word}` is not a backoff; begin with exponential, linear, constant, list, zero or stop, or with \
                     the name of a profile, like aws-sdk"
                )
            }
            Problem::Key(nearest) => write!(f, "`{word}` is not a setting; did you mean `{nearest}`?"),
            Problem::NoValue => write!(f, "`{word}` has no value; write it as name=value, like base=500ms"),
            Problem::Twice => write!(f, "`{word}` is set twice; keep one of them"),
            Problem::NotForShape(shape) => {
                write!(f, "`{word}` has no meaning for {shape} backoff; leave it out, or choose another backoff")
            }
            Problem::Missing(example) => write!(f, "a {word} backoff needs {example}; add it"),
            Problem::Limitless => write!(f, "`{word}` must have a length; `inf` has no meaning there"),
            Problem::TooLong => {
                write!(f, "`{word}` has more than 16 delays; the last one repeats, so shorten the list")
            }
            Problem::NoUnit => write!(
                f,
                "`{word}`: these delays have no common unit that fits; round them, to milliseconds for instance"
            ),
            Problem::Reservation => {
                write!(f, "`{word}` is not a reservation; it looks like 1520;token= followed by 32 hexadecimal digits")
            }
            Problem::Policy(ref error) => fmt::Display::fmt(error, f),
        }
    }
}

impl core::error::Error for ParseError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        None
    }
}

/// A short copy of a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word {
    bytes: [u8; Self::ROOM],
    len: u8,
}

impl Word {
    const ROOM: usize = 40;

    pub(crate) fn new(text: &str) -> Self {
        let mut len = text.len().min(Self::ROOM);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        let mut bytes = [0; Self::ROOM];
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        Self { bytes, len: len as u8 }
    }

    pub(crate) fn as_str(&self) -> &str {
        // It was cut at a character's boundary.
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_word_is_cut_between_characters() {
        let text = "ä".repeat(30);
        assert_eq!(Word::new(&text).as_str(), "ä".repeat(20));
        let odd = format!("a{text}");
        assert_eq!(Word::new(&odd).as_str().len(), 39);
        assert_eq!(format!("{:?}", Word::new("word")), "\"word\"");
    }
}
