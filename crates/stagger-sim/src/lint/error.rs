use core::fmt;

use super::parse_number;

/// A value that cannot be parsed, with the values that are expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseValueError {
    word: String,
    known: &'static str,
}

impl ParseValueError {
    pub(crate) fn new(word: &str, known: &'static str) -> Self {
        Self { word: word.to_owned(), known }
    }

    /// Returns what is accepted, as the end of "expected …", for a caller that shows the value itself.
    #[must_use]
    pub const fn expected(&self) -> &'static str {
        self.known
    }
}

impl fmt::Display for ParseValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid value `{}`; expected {}", self.word, self.known)?;
        match millions(&self.word) {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => Ok(()),
        }
    }
}

/// Returns the text with `M` in place of an `m`, if it is a number that ends with it, perhaps before a unit of time: `m`
/// is a minute elsewhere, and no number here.
fn millions(word: &str) -> Option<String> {
    let (number, unit) = word.find('/').map_or((word, ""), |at| word.split_at(at));
    let digits = number.strip_suffix('m')?;
    parse_number(digits).ok().map(|_| format!("{digits}M{unit}"))
}

impl core::error::Error for ParseValueError {}

#[cfg(test)]
mod tests {
    use crate::lint::{Rate, parse_count};

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
