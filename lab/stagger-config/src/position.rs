//! Places in a text, and the error that names one.

use core::fmt;

/// A place in a text. Lines and columns count from 1; a column is a number of characters, not of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// The first character of a text.
    pub const START: Self = Self { line: 1, column: 1 };

    pub(crate) const fn new(line: usize, column: usize) -> Self {
        Self { line, column }
    }
}

impl fmt::Display for Position {
    /// Writes `line:column`, as compilers do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A part of a text, from a position up to another, which it does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Span {
    /// The first character.
    pub start: Position,
    /// The position after the last character.
    pub end: Position,
}

impl Span {
    pub(crate) const fn new(start: Position, end: Position) -> Self {
        Self { start, end }
    }
}

/// Finds the positions of bytes. Asked in the order of the text, it passes over it once.
pub(crate) struct Positions<'a> {
    text: &'a str,
    at: usize,
    position: Position,
}

impl<'a> Positions<'a> {
    pub(crate) const fn of(text: &'a str) -> Self {
        Self { text, at: 0, position: Position::START }
    }

    /// Returns the position of a byte; one inside a character or behind the end counts as the next that is neither.
    pub(crate) fn find(&mut self, byte: usize) -> Position {
        if byte < self.at {
            *self = Self::of(self.text);
        }
        let passed = self.text[self.at..].char_indices().take_while(|(at, _)| self.at + at < byte);
        let mut end = self.at;
        for (at, character) in passed {
            end = self.at + at + character.len_utf8();
            self.position = match character {
                '\n' => Position::new(self.position.line + 1, 1),
                _ => Position::new(self.position.line, self.position.column + 1),
            };
        }
        self.at = end;
        self.position
    }

    pub(crate) fn span(&mut self, start: usize, end: usize) -> Span {
        let start = self.find(start);
        Span::new(start, self.find(end))
    }
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    position: Position,
    message: String,
}

impl ReadError {
    pub(crate) fn syntax(syntax: &str, position: Position, problem: &str) -> Self {
        Self { position, message: format!("not valid {syntax}: {problem}") }
    }

    pub(crate) fn new(position: Position, message: impl Into<String>) -> Self {
        Self { position, message: message.into() }
    }

    /// Returns where the problem is.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }
}

impl fmt::Display for ReadError {
    /// Writes the problem, without the position.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for ReadError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_lines_in_any_order() {
        let text = "aß\nc\r\nd";
        let mut positions = Positions::of(text);
        for (byte, line, column) in [(0, 1, 1), (1, 1, 2), (3, 1, 3), (4, 2, 1), (7, 3, 1), (1, 1, 2), (99, 3, 2)] {
            assert_eq!(positions.find(byte), Position::new(line, column), "byte {byte}");
        }
        assert_eq!(positions.span(1, 3).start.to_string(), "1:2");
    }
}
