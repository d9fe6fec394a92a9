//! Findings in files: where they are, and the change of the file that fixes them.

use core::fmt;
use core::ops::Range;

use crate::Finding;

/// What a rule has found in a file: where, and how to change the file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileFinding {
    pub(crate) finding: Finding,
    pub(crate) path: String,
    pub(crate) place: Option<Place>,
    pub(crate) fix: Option<Fix>,
}

impl FileFinding {
    /// Returns the rule, what was found, and how to fix it in words.
    #[must_use]
    pub const fn finding(&self) -> &Finding {
        &self.finding
    }

    /// Returns the path of the value that it is about, such as `edge.orders-database.timeout`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the place of the value, or of the part of the file that would have it if the value is a default.
    #[must_use]
    pub const fn place(&self) -> Option<Place> {
        self.place
    }

    /// Returns the change of the file.
    #[must_use]
    pub const fn fix(&self) -> Option<&Fix> {
        self.fix.as_ref()
    }
}

/// A change of a file that fixes a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    pub(crate) text: String,
    pub(crate) edits: Vec<Edit>,
}

/// A part of a file, and what is to be written in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// What is replaced; empty to insert.
    pub place: Place,
    /// The new text.
    pub text: String,
}

impl Fix {
    /// Returns what the file should say, in its own syntax: one or more lines.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the edits of the file, which do not overlap; none if the change is left to people.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// Returns the file with the edits; `None` if there are none.
    #[must_use]
    pub fn applied_to(&self, text: &str) -> Option<String> {
        if self.edits.is_empty() {
            return None;
        }
        let mut edits: Vec<_> = self.edits.iter().map(|edit| (edit.place.bytes(text), &edit.text)).collect();
        // From the end on, so that the positions of the others stay valid.
        edits.sort_by_key(|(bytes, _)| core::cmp::Reverse(bytes.start));
        let mut fixed = text.to_owned();
        for (bytes, text) in edits {
            fixed.replace_range(bytes, text);
        }
        Some(fixed)
    }
}

/// A part of a text. Lines and columns count from 1; a column is a number of characters, not of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Place {
    /// Line of the first character.
    pub line: usize,
    /// Column of the first character.
    pub column: usize,
    /// Line of the position after the last character.
    pub end_line: usize,
    /// Column of the position after the last character.
    pub end_column: usize,
}

impl Place {
    /// Creates a place from its first position and the position after its last, each a line and a column.
    #[must_use]
    pub const fn new((line, column): (usize, usize), (end_line, end_column): (usize, usize)) -> Self {
        Self { line, column, end_line, end_column }
    }

    /// Returns the place of a range of bytes.
    #[must_use]
    pub fn of(text: &str, bytes: &Range<usize>) -> Self {
        Self::new(line_and_column(text, bytes.start), line_and_column(text, bytes.end))
    }

    /// Returns the range of bytes in a text. Positions behind the end of a line or of the text are those of its end.
    #[must_use]
    pub fn bytes(&self, text: &str) -> Range<usize> {
        let start = byte(text, self.line, self.column);
        start..byte(text, self.end_line, self.end_column).max(start)
    }
}

impl fmt::Display for Place {
    /// Writes the line and the column of its start, as compilers do: `3:14`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Returns the line and the column of a position in bytes, both from 1, the column in characters.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
}

fn byte(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = &text[before..];
    let line = rest.split_inclusive('\n').next().unwrap_or_default();
    let end = line.trim_end_matches(['\n', '\r']).len();
    before + line.char_indices().nth(column.saturating_sub(1)).map_or(end, |(at, _)| at.min(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_again_in_bytes() {
        let text = "aß\r\n\ncd";
        for (bytes, shown) in [(0..1, "1:1"), (1..3, "1:2"), (5..5, "2:1"), (6..8, "3:1"), (7..8, "3:2")] {
            let place = Place::of(text, &bytes);
            assert_eq!((place.to_string(), place.bytes(text)), (shown.to_owned(), bytes));
        }
    }

    #[test]
    fn a_place_that_a_text_does_not_have_is_at_its_end() {
        for (place, want) in [
            (Place::new((9, 9), (9, 10)), 4..4),
            (Place::new((1, 9), (1, 10)), 1..1),
            (Place::new((2, 2), (1, 1)), 3..3),
        ] {
            assert_eq!(place.bytes("a\ncd"), want, "{place:?}");
        }
    }
}
