//! A file as a stream: its values are passed over one by one, and its spans handed on.

use core::fmt;
use std::io::{self, BufReader, Read};

use memchr::memchr2;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::jaeger::{Trace, Traces};
use super::otlp::ResourceSpans;
use super::values::{List, Members, Object};
use crate::span::{Ending, Kind};

/// Longest text within quotes, in bytes: the parser has it in memory as a whole.
const MAX_TEXT: usize = 16 << 20;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;

/// Reads all values of a file.
pub(crate) fn read(reader: impl Read, sink: &mut impl Sink) -> Result<(), ReadError> {
    let reader = BufReader::with_capacity(BUFFER, Bounded::new(reader, MAX_TEXT));
    let mut values = serde_json::Deserializer::from_reader(reader);
    // The end is reached if nothing but white space is left.
    while let Err(more) = values.end() {
        if more.is_io() {
            return Err(ReadError::new(&more));
        }
        Top { sink: &mut *sink }.deserialize(&mut values).map_err(|error| ReadError::new(&error))?;
    }
    Ok(())
}

/// A value at the top of a file: a document, or a list of them.
struct Top<'a, S> {
    sink: &'a mut S,
}

impl<'de, S: Sink> DeserializeSeed<'de> for Top<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: Sink> Visitor<'de> for Top<'_, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Document::<S>::EXPECTED)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Object(Document::new(&mut *self.sink)))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        Object(Document::new(self.sink)).visit_map(map)
    }
}

/// A document, of whichever format.
///
/// - OTLP, as collectors write it: `resourceSpans`.
/// - Tempo (`/api/traces/ID`) and what Grafana saves: `batches`, which is the same list by its older name; around
///   it, or around `resourceSpans`, `trace` (`/api/v2/traces/ID`).
/// - Jaeger's interface: `data`, a list of traces; one trace of that list: `spans` and `processes`; and its interface
///   that speaks OTLP (`/api/v3/traces/ID`): `result`, around `resourceSpans`.
struct Document<'a, S> {
    trace: Trace<'a, S>,
    is_known: bool,
    /// The first member that is of none of the formats.
    other: Option<String>,
    /// How many documents are around it.
    depth: u8,
}

/// Documents that may be around one.
const MAX_DEPTH: u8 = 2;

impl<'a, S> Document<'a, S> {
    fn new(sink: &'a mut S) -> Self {
        Self { trace: Trace::new(sink), is_known: false, other: None, depth: 0 }
    }
}

impl<S: Sink> Members for Document<'_, S> {
    const EXPECTED: &'static str = "an object with resourceSpans (OTLP), batches (Tempo), or data or spans (Jaeger)";

    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "resourceSpans" | "resource_spans" | "batches" => {
                map.next_value_seed(List(ResourceSpans { sink: &mut *self.trace.sink }))?;
            }
            "data" => map.next_value_seed(List(Traces { sink: &mut *self.trace.sink }))?,
            "spans" | "processes" => self.trace.member(key, map)?,
            "trace" | "result" if self.depth < MAX_DEPTH => {
                let inner = Document { depth: self.depth + 1, ..Document::new(&mut *self.trace.sink) };
                map.next_value_seed(Object(inner))?;
            }
            _ => {
                if self.other.is_none() {
                    self.other = Some(key.chars().take(LONGEST_NAME).collect());
                }
                return map.next_value::<IgnoredAny>().map(drop);
            }
        }
        self.is_known = true;
        Ok(())
    }

    fn end(&mut self) {
        self.trace.end();
        if !self.is_known {
            self.trace.sink.unknown(self.other.take());
        }
    }
}

/// Longest name of a member that is kept for a message, in characters.
const LONGEST_NAME: usize = 40;

/// A span as a file has it.
#[derive(Debug)]
pub(crate) struct FoundSpan<'a> {
    pub(crate) trace: u128,
    pub(crate) id: u64,
    pub(crate) parent: u64,
    pub(crate) service: &'a str,
    pub(crate) name: &'a str,
    pub(crate) peer: &'a str,
    pub(crate) kind: Kind,
    pub(crate) ending: Ending,
    pub(crate) resends: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) hint: u64,
}

pub(crate) trait Sink {
    fn span(&mut self, span: FoundSpan<'_>);

    /// Is called for a value of the file that is of none of the formats, with the name of its first member.
    fn unknown(&mut self, member: Option<String>);
}

/// Why a file cannot be read to its end.
#[derive(Debug)]
pub struct ReadError {
    line: usize,
    column: usize,
    message: String,
    kind: io::ErrorKind,
}

impl ReadError {
    pub(crate) fn new(error: &serde_json::Error) -> Self {
        let kind = error.io_error_kind().unwrap_or(io::ErrorKind::InvalidData);
        // The place is told apart from the message.
        let text = error.to_string();
        let (message, _) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
        Self { line: error.line(), column: error.column(), message: message.to_owned(), kind }
    }

    /// Returns the line, from 1; 0 if the file could not be read.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Returns the column in bytes, from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.column
    }

    /// Returns the kind of the error of the reader; `InvalidData` if the text is not what is expected.
    #[must_use]
    pub const fn kind(&self) -> io::ErrorKind {
        self.kind
    }
}

impl fmt::Display for ReadError {
    /// Writes the problem, without the place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for ReadError {}

/// A reader that fails at a text which is too long.
pub(super) struct Bounded<R> {
    inner: R,
    state: Quotes,
    /// Longest text within quotes, in bytes.
    longest: usize,
}

#[derive(Clone, Copy)]
enum Quotes {
    Outside,
    /// Within quotes, after so many bytes.
    Inside(usize),
    /// After a backslash within quotes.
    Escaped(usize),
}

impl<R> Bounded<R> {
    pub(super) const fn new(inner: R, longest: usize) -> Self {
        Self { inner, state: Quotes::Outside, longest }
    }

    /// Passes over bytes. Returns whether a text is too long.
    fn pass(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (state, passed) = match self.state {
                Quotes::Outside => match memchr::memchr(b'"', rest) {
                    Some(at) => (Quotes::Inside(0), at + 1),
                    None => (Quotes::Outside, rest.len()),
                },
                Quotes::Inside(length) => match memchr2(b'"', b'\\', rest) {
                    Some(at) if rest[at] == b'"' => (Quotes::Outside, at + 1),
                    Some(at) => (Quotes::Escaped(length + at + 1), at + 1),
                    None => (Quotes::Inside(length + rest.len()), rest.len()),
                },
                Quotes::Escaped(length) => (Quotes::Inside(length + 1), 1),
            };
            self.state = state;
            rest = &rest[passed..];
            if let Quotes::Inside(length) | Quotes::Escaped(length) = self.state
                && length > self.longest
            {
                return true;
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
