use std::io::{self, Read};

use memchr::memchr2;

/// A reader that fails at a text which is too long.
pub(super) struct Bounded<R> {
    inner: R,
    state: State,
    /// Longest text within quotes, in bytes.
    longest: usize,
}

#[derive(Clone, Copy)]
enum State {
    Outside,
    /// Within quotes, after so many bytes.
    Inside(usize),
    /// After a backslash within quotes.
    Escaped(usize),
}

impl<R> Bounded<R> {
    pub(super) const fn new(inner: R, longest: usize) -> Self {
        Self { inner, state: State::Outside, longest }
    }

    /// Passes over bytes. Returns whether a text is too long.
    fn pass(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (state, passed) = match self.state {
                State::Outside => match memchr::memchr(b'"', rest) {
                    Some(at) => (State::Inside(0), at + 1),
                    None => (State::Outside, rest.len()),
                },
                State::Inside(length) => match memchr2(b'"', b'\\', rest) {
                    Some(at) if rest[at] == b'"' => (State::Outside, at + 1),
                    Some(at) => (State::Escaped(length + at + 1), at + 1),
                    None => (State::Inside(length + rest.len()), rest.len()),
                },
                State::Escaped(length) => (State::Inside(length + 1), 1),
            };
            self.state = state;
            rest = &rest[passed..];
            if let State::Inside(length) | State::Escaped(length) = self.state {
                if length > self.longest {
                    return true;
                }
            }
        }
        false
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if self.pass(buffer.get(..read).unwrap_or_default()) {
            let message = format!("a text is longer than {} bytes; leave such attributes out", self.longest);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 1_000;

    /// Reads in parts of this length.
    fn passes(text: &str, part: usize) -> bool {
        let mut reader = Bounded::new(text.as_bytes(), LONGEST);
        let mut buffer = vec![0; part];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    #[test]
    fn only_a_long_text_is_refused_wherever_the_parts_end() {
        let long = "a".repeat(LONGEST + 1);
        for part in [1, 7, 64, LONGEST * 9] {
            assert!(!passes(&format!("{{\"a\": \"{long}"), part));
            // An escaped quote does not end it.
            let escaped = "\\\"".repeat(LONGEST / 2 + 1);
            assert!(!passes(&format!("\"{escaped}"), part));
            assert!(passes(&long, part), "white space or a number");
            let many = "\"aaaaaaaaaaaaaaa\", ".repeat(LONGEST / 16);
            assert!(passes(&many, part));
        }
    }
}
