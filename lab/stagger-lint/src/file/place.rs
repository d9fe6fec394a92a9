use core::fmt;
use core::ops::Range;

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
