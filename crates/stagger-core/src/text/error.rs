use core::fmt;

use crate::policy::PolicyError;

/// The error of every parser in this crate: what is wrong, the offending word, and what is accepted instead.
///
/// It holds a copy of the word, at most 40 bytes, so it can outlive the text and needs no allocation.
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
    DurationNoUnit,
    DurationTooLong,
    DurationTooFine,
    DurationNegative,
    Comma,
    Ratio,
    RatioTooFine,
    Number,
    Multiplier,
    Jitter,
    HintMode,
    /// The word names neither a backoff nor a profile; the nearest name, if one is near.
    Backoff(Option<&'static str>),
    /// The word is not a setting; the nearest name, if one is near.
    Key(Option<&'static str>),
    /// The setting counts retries; the number of attempts that means, if it is a number.
    Retries(Option<u32>),
    NoValue,
    /// The value of this setting stands without its name.
    NoName(&'static str),
    Twice,
    Range,
    /// The setting has no meaning for this backoff.
    NotForBackoff(&'static str),
    /// The backoff requires this setting.
    Missing(&'static str),
    Limitless,
    TooLong,
    NoUnit,
    #[cfg(target_has_atomic = "64")]
    Reservation,
    /// Every word is valid, but the policy as a whole is not.
    Policy(PolicyError),
}

impl ParseError {
    pub(crate) fn new(problem: Problem, word: &str) -> Self {
        Self { problem, word: Word::new(word) }
    }

    /// Returns the offending word, shortened to 40 bytes; empty if the policy as a whole is invalid.
    #[must_use]
    pub fn word(&self) -> &str {
        self.word.as_str()
    }

    /// Returns the problems of the policy, if every word is valid and only the whole is not.
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
        let rest = match self.problem {
            Problem::Policy(error) => return fmt::Display::fmt(&error, f),
            Problem::Missing(example) => return write!(f, "a {word} backoff needs {example}; add it"),
            Problem::Backoff(Some(nearest)) => {
                return write!(f, "`{word}` is not a backoff or a profile; did you mean `{nearest}`?");
            }
            Problem::Key(Some(nearest)) => return write!(f, "`{word}` is not a setting; did you mean `{nearest}`?"),
            Problem::NotForBackoff(backoff) => {
                return write!(
                    f,
                    "`{word}` has no meaning for {backoff} backoff; leave it out, or choose another backoff"
                );
            }
            Problem::Retries(Some(attempts)) => {
                return write!(f, "`{word}` is not a setting; write max-attempts={attempts}: the first call counts");
            }
            Problem::NoName(name) => return write!(f, "`{word}` has no name; write it as {name}={word}"),
            Problem::Duration => "is not a length of time; write it like 500ms, 1.5s, 1m30s or 2h",
            Problem::DurationUnit => "has a unit that is not known; use ns, us, ms, s, m, h or d after each number",
            Problem::DurationNoUnit => "has a number without a unit; write ns, us, ms, s, m, h or d after each number",
            Problem::Retries(None) => "is not a setting; write max-attempts, which counts the first call",
            Problem::DurationTooLong => "is longer than 292 years; use inf or none where no limit is meant",
            Problem::DurationTooFine => "is finer than a nanosecond; round it",
            Problem::DurationNegative => "is negative; use a length of time of 0s or more, like 500ms",
            Problem::Comma => {
                "has a stray comma or an empty delay; separate settings by spaces, and delays by one comma each"
            }
            Problem::Ratio => "is not a share; write it as 20% or 0.2, from 0 to 1",
            Problem::RatioTooFine => {
                "is not a whole number of millionths; round it to six decimals, down if it is a threshold"
            }
            Problem::Number => "is not a whole number; write one from 1 to 4294967295, or inf",
            Problem::Multiplier => "is not a number; write a multiplier of 1 or more, like 2 or 1.5",
            Problem::Jitter => {
                "is not a jitter; use full, equal, decorrelated, none, or a share like ±20% or added time like add:1s"
            }
            Problem::HintMode => "is not a hint mode; use at-least, exact or clamp:5s",
            Problem::Backoff(None) => {
                "is not a backoff; begin with exponential, linear, constant, uniform, decorrelated, list, zero or stop, \
                 or with the name of a profile, like aws-sdk"
            }
            Problem::Key(None) => {
                "is not a setting; use base, cap, multiplier, step, range, delays, floor, jitter, spread, max-attempts, \
                 max-elapsed, max-hint, hint, hint-spread, throttled-base, local-base or stable-after"
            }
            Problem::Range => "is not a range; write it as 1s..5s",
            Problem::NoValue => "has no value; write it as name=value, like base=500ms",
            Problem::Twice => "is set twice; keep one of them",
            Problem::Limitless => "must have a length; `inf` has no meaning there",
            Problem::TooLong => "has more than 16 delays; the last one repeats, so shorten the list",
            Problem::NoUnit => "have no common unit that fits; round them, to milliseconds for instance",
            #[cfg(target_has_atomic = "64")]
            Problem::Reservation => "is not a reservation; write it as 1520;token= followed by 32 hexadecimal digits",
        };
        write!(f, "`{word}` {rest}")
    }
}

impl core::error::Error for ParseError {}

/// A copy of a word, at most 40 bytes.
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
        // `new` cuts at a character boundary.
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
