//! The error of every parser of this crate, and suggestions for mistyped names.

use core::fmt;

use super::Outside;
use crate::policy::PolicyError;

/// The error of every parser in this crate: what is wrong, the offending word, and what is accepted instead.
///
/// It holds a copy of the word, at most 40 bytes, so it can outlive the text and needs no allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParseError {
    problem: Problem,
    word: QuotedWord,
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
    #[cfg(all(feature = "admission", target_has_atomic = "64"))]
    Reservation,
    /// Every word is valid, but the policy as a whole is not.
    Policy(PolicyError),
}

impl ParseError {
    pub(crate) fn new(problem: Problem, word: &str) -> Self {
        Self { problem, word: QuotedWord::new(word) }
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
        let word = Outside(self.word.as_str());
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
                "is not a backoff; begin with exponential, linear, constant, uniform, decorrelated, list, zero or \
                 stop, or with the name of a profile, like aws-sdk"
            }
            Problem::Key(None) => {
                "is not a setting; use base, cap, multiplier, step, range, delays, floor, jitter, spread, \
                 max-attempts, max-elapsed, max-hint, hint, hint-spread, throttled-base, local-base or stable-after"
            }
            Problem::Range => "is not a range; write it as 1s..5s",
            Problem::NoValue => "has no value; write it as name=value, like base=500ms",
            Problem::Twice => "is set twice; keep one of them",
            Problem::Limitless => "must have a length; `inf` has no meaning there",
            Problem::TooLong => "has more than 16 delays; the last one repeats, so shorten the list",
            Problem::NoUnit => "have no common unit that fits; round them, to milliseconds for instance",
            #[cfg(all(feature = "admission", target_has_atomic = "64"))]
            Problem::Reservation => "is not a reservation; write it as 1520;token= followed by 32 hexadecimal digits",
        };
        write!(f, "`{word}` {rest}")
    }
}

impl core::error::Error for ParseError {}

/// A copy of a word, at most 40 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuotedWord {
    bytes: [u8; Self::ROOM],
    len: u8,
}

impl QuotedWord {
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

impl fmt::Debug for QuotedWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Returns the name that is most like `word`, if at most one letter in three differs.
#[must_use]
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().map(|name| (distance(word.as_bytes(), name.as_bytes()), name));
    near.filter(|(distance, _)| *distance <= word.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns how many letters have to be changed, added or removed (Levenshtein).
fn distance(a: &[u8], b: &[u8]) -> usize {
    // Names have at most 31 letters; of a longer one only the first 31 count.
    let mut row = [0; 32];
    let b = &b[..b.len().min(row.len() - 1)];
    for (at, cell) in row.iter_mut().enumerate() {
        *cell = at;
    }
    for (i, x) in a.iter().enumerate() {
        let mut corner = core::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_word_is_cut_between_characters() {
        let text = "ä".repeat(30);
        assert_eq!(QuotedWord::new(&text).as_str(), "ä".repeat(20));
        let odd = format!("a{text}");
        assert_eq!(QuotedWord::new(&odd).as_str().len(), 39);
        assert_eq!(format!("{:?}", QuotedWord::new("word")), "\"word\"");
    }

    #[test]
    fn the_nearest_name_is_suggested_unless_all_are_far() {
        for (word, want) in [("tokns", Some("tokens")), ("windw", Some("window")), ("weather", None), ("", None)] {
            assert_eq!(nearest(word, ["tokens", "window"]), want, "{word}");
        }
    }

    #[test]
    fn the_distance_of_two_words_counts_edits() {
        for (a, b, want) in [
            ("base", "base", 0),
            ("bse", "base", 1),
            ("kitten", "sitting", 3),
            ("", "abc", 3),
            ("abc", "", 3),
            ("max-atempts", "max-attempts", 1),
            ("flaw", "lawn", 2),
        ] {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), want, "{a}, {b}");
        }
        // Longer than the row.
        assert_eq!(distance(b"", "x".repeat(100).as_bytes()), 31);
        assert_eq!(distance("x".repeat(100).as_bytes(), b"x"), 99);
    }
}
