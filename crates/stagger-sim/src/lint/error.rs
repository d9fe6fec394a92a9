use core::fmt;

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
}

impl fmt::Display for ParseValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid value `{}`; expected {}", self.word, self.known)
    }
}

impl core::error::Error for ParseValueError {}
