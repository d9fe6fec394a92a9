//! Regular expressions for the output of the command.

use regex::bytes::Regex;

/// The patterns to search for in one output stream of the command.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    pub(super) retry_if: Vec<Regex>,
    pub(super) stop_if: Vec<Regex>,
}

impl Patterns {
    pub(super) fn all(&self) -> impl Iterator<Item = &Regex> {
        self.retry_if.iter().chain(&self.stop_if)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

/// Searches a stream for regular expressions: line by line like grep, in bytes of any encoding, and in bounded memory.
/// The result does not depend on how the stream is split into chunks.
#[derive(Debug)]
pub(super) struct LineMatcher<'a> {
    patterns: Vec<(&'a Regex, bool)>,
    line: Vec<u8>,
}

/// Maximum line length in bytes; a longer line is searched in chunks of this size that overlap by half.
const MAX_LINE: usize = 64 * 1024;

impl<'a> LineMatcher<'a> {
    pub(super) fn new(patterns: impl IntoIterator<Item = &'a Regex>) -> Self {
        Self { patterns: patterns.into_iter().map(|regex| (regex, false)).collect(), line: Vec::new() }
    }

    /// Searches the next chunk of the stream.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.is_searching() {
            let room = MAX_LINE - self.line.len();
            let piece = &bytes[..bytes.len().min(room)];
            match piece.iter().position(|&byte| byte == b'\n') {
                Some(end) => {
                    self.line.extend_from_slice(&piece[..end]);
                    bytes = &bytes[end + 1..];
                    self.search();
                    self.line.clear();
                }
                None => {
                    self.line.extend_from_slice(piece);
                    bytes = &bytes[piece.len()..];
                    if self.line.len() == MAX_LINE {
                        self.search();
                        self.line.drain(..MAX_LINE / 2);
                    }
                }
            }
        }
    }

    /// Searches the last line if it does not end with a newline.
    pub(super) fn finish(&mut self) {
        if !self.line.is_empty() && self.is_searching() {
            self.search();
            self.line.clear();
        }
    }

    /// Returns whether this pattern, one of those passed to [`new`](Self::new), matched.
    pub(super) fn matched(&self, pattern: &Regex) -> bool {
        self.patterns.iter().any(|(regex, found)| *found && core::ptr::eq(*regex, pattern))
    }

    fn is_searching(&self) -> bool {
        self.patterns.iter().any(|(_, found)| !found)
    }

    fn search(&mut self) {
        for (regex, found) in &mut self.patterns {
            *found = *found || regex.is_match(&self.line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, pieces: &[&[u8]]) -> bool {
        let regex = Regex::new(pattern).unwrap();
        let mut matcher = LineMatcher::new([&regex]);
        for piece in pieces {
            matcher.feed(piece);
        }
        matcher.finish();
        matcher.matched(&regex)
    }

    #[test]
    fn matches_do_not_depend_on_chunking() {
        let stream = b"first line\nsecond: timed out\nno newline at the end";
        for (pattern, want) in
            [("^second: timed out$", true), ("end$", true), ("line\\s+second", false), ("^timed", false), ("^$", false)]
        {
            assert_eq!(found(pattern, &[stream]), want, "{pattern}, whole");
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            assert_eq!(found(pattern, &bytes), want, "{pattern}, byte by byte");
        }
    }

    #[test]
    fn non_utf8_bytes_are_searched() {
        assert!(found("reset", &[b"\xff\xfe connection reset \x80\n"]));
        assert!(found(r"(?-u)\xff", &[b"\xff\n"]));
    }

    #[test]
    fn an_unbounded_line_is_searched_in_bounded_memory() {
        let regex = Regex::new("needle").unwrap();
        let mut matcher = LineMatcher::new([&regex]);
        for _ in 0..1_000 {
            matcher.feed(&[b'x'; 1_000]);
            assert!(matcher.line.len() <= MAX_LINE);
        }
        matcher.feed(b"need");
        matcher.feed(b"le");
        matcher.feed(&[b'x'; MAX_LINE]);
        assert!(matcher.matched(&regex));
    }
}
