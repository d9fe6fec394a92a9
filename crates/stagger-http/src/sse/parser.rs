use core::error::Error;
use core::fmt;
use core::mem;
use core::time::Duration;
use std::borrow::Cow;
use std::sync::Arc;

use memchr::{memchr, memchr2};

use crate::header::parse_digits;
use crate::hint::LONGEST_WAIT;

/// The default limit of an event.
pub(super) const MAX_EVENT_BYTES: usize = 1 << 20;
/// The longest id: each attempt sends it in a header, and servers accept about 8 KiB of headers.
const MAX_ID_BYTES: usize = 4 << 10;
/// How much longer than an event a line may be: a byte order mark, the name of a field, a colon and a space.
const FIELD_NAME: usize = 16;
/// The capacity that a buffer keeps from one event to the next.
const KEPT_CAPACITY: usize = 16 << 10;

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The type of the event: `message`, unless the server named another.
    pub event: Cow<'static, str>,
    /// The data: the values of all `data` fields, joined with line feeds. May be empty.
    pub data: String,
    /// The id of this event, or of the last one before it that had an id; empty if there was none.
    pub last_event_id: Arc<str>,
}

/// An incremental parser of the format `text/event-stream`, without I/O.
///
/// It follows the [HTML
/// standard](https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation): lines end
/// with LF, CR or CRLF, however the bytes are split; a leading byte order mark and comments are skipped; invalid UTF-8
/// is replaced; an event without data is not returned; an event that is not followed by an empty line is discarded.
/// Differs from it in:
///
/// - The length of an event is limited: its type and data together, 1 MiB by default. So is the length of a line, of a
///   comment, too: 16 bytes more. So is an id: 4 KiB.
/// - An id with a control character, which no header can carry, is ignored; in the standard, only one with NUL is.
/// - The last id survives [`restart`](Self::restart), as in browsers.
///
/// Each byte is examined once. Only the current line and the current event are held.
///
/// ```
/// use stagger_http::sse::Parser;
///
/// let mut parser = Parser::new();
/// let mut bytes: &[u8] = b"id: 7\nevent: price\ndata: 4";
/// assert_eq!(parser.parse(&mut bytes)?, None);
/// bytes = b"2\n\n";
/// let message = parser.parse(&mut bytes)?.unwrap();
/// assert_eq!((&*message.event, &*message.data, &*message.last_event_id), ("price", "42", "7"));
/// # Ok::<(), stagger_http::sse::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Parser {
    /// The part of the current line that has arrived.
    line: Vec<u8>,
    data: String,
    event: String,
    /// The id of the current event; it counts from the end of the event on.
    id: Option<Arc<str>>,
    last_event_id: Arc<str>,
    retry: Option<Duration>,
    position: Position,
    max_event_bytes: usize,
    lines: u64,
    failed: Option<ParseError>,
}

/// What the next byte may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// The first line, which may begin with a byte order mark.
    FirstLine,
    Line,
    /// A line feed that belongs to the carriage return before it.
    AfterReturn,
}

impl Parser {
    /// Creates a parser for a stream from its beginning.
    #[must_use]
    pub fn new() -> Self {
        Self {
            line: Vec::new(),
            data: String::new(),
            event: String::new(),
            id: None,
            last_event_id: Arc::from(""),
            retry: None,
            position: Position::FirstLine,
            max_event_bytes: MAX_EVENT_BYTES,
            lines: 0,
            failed: None,
        }
    }

    /// Sets the maximum length of an event in bytes: its type, and its data with the line feeds between its lines.
    /// Default 1 MiB.
    #[must_use]
    pub const fn max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// Sets the id that counts as the last one until the stream has another. Default: empty.
    #[must_use]
    pub fn with_last_event_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.last_event_id = id.into();
        self
    }

    /// Parses up to the end of the next event, and removes from `bytes` what was parsed. Returns `None` when all of it
    /// was, and no event has ended.
    ///
    /// # Errors
    /// Returns [`ParseError`] if a limit is exceeded; from then on, at every call until [`restart`](Self::restart).
    pub fn parse(&mut self, bytes: &mut &[u8]) -> Result<Option<Message>, ParseError> {
        let result = match self.failed {
            Some(error) => Err(error),
            None => self.parse_lines(bytes),
        };
        if let Err(error) = result {
            self.failed = Some(error);
            (self.line, self.data) = (Vec::new(), String::new());
        }
        result
    }

    /// Prepares for a new stream that continues this one: discards an incomplete event, and keeps the last id and the
    /// reconnection time.
    pub fn restart(&mut self) {
        self.line.clear();
        self.data.clear();
        self.event.clear();
        self.id = None;
        self.failed = None;
        self.position = Position::FirstLine;
    }

    /// Returns the id of the last event that had one, to be sent in `Last-Event-ID`; empty if there is none.
    #[must_use]
    pub const fn last_event_id(&self) -> &Arc<str> {
        &self.last_event_id
    }

    /// Returns the reconnection time that the server last asked for with `retry`, which no client needs to
    /// accept: it may be up to [`LONGEST_WAIT`].
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the number of lines that have ended.
    pub(super) const fn lines(&self) -> u64 {
        self.lines
    }

    fn parse_lines(&mut self, bytes: &mut &[u8]) -> Result<Option<Message>, ParseError> {
        loop {
            if self.position == Position::AfterReturn && !bytes.is_empty() {
                *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
                self.position = Position::Line;
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.line.len() + part.len() > self.max_event_bytes.saturating_add(FIELD_NAME) {
                return Err(ParseError::LineTooLong { max_bytes: self.max_event_bytes });
            }
            let Some((terminator, rest)) = rest.split_first() else {
                self.line.extend_from_slice(part);
                *bytes = rest;
                return Ok(None);
            };
            *bytes = rest;
            let message = if self.line.is_empty() {
                self.end_line(part)
            } else {
                let mut line = mem::take(&mut self.line);
                line.extend_from_slice(part);
                let message = self.end_line(&line);
                line.clear();
                line.shrink_to(KEPT_CAPACITY);
                self.line = line;
                message
            };
            self.position = if *terminator == b'\r' { Position::AfterReturn } else { Position::Line };
            if let Some(message) = message? {
                return Ok(Some(message));
            }
        }
    }

    fn end_line(&mut self, line: &[u8]) -> Result<Option<Message>, ParseError> {
        self.lines = self.lines.wrapping_add(1);
        let line = match self.position {
            Position::FirstLine => line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line),
            _ => line,
        };
        if line.is_empty() {
            return Ok(self.end_event());
        }
        let (name, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                let value = self.bounded(value, self.data.len() + self.event.len())?;
                self.data.push_str(&value);
                self.data.push('\n');
            }
            b"event" => {
                // The last line feed of the data is not part of it.
                let value = self.bounded(value, self.data.len().saturating_sub(1))?;
                self.event.clear();
                self.event.push_str(&value);
            }
            b"id" => self.set_id(value)?,
            b"retry" => {
                let millis = core::str::from_utf8(value).ok().and_then(parse_digits);
                let wait = millis.map(Duration::from_millis).filter(|wait| *wait <= LONGEST_WAIT);
                self.retry = wait.or(self.retry);
            }
            // A comment, which has no name, or an unknown field.
            _ => {}
        }
        Ok(None)
    }

    /// Decodes a value, unless the event is too long with it and `others` bytes.
    fn bounded<'v>(&self, value: &'v [u8], others: usize) -> Result<Cow<'v, str>, ParseError> {
        let value = String::from_utf8_lossy(value);
        if others + value.len() > self.max_event_bytes {
            return Err(ParseError::EventTooLong { max_bytes: self.max_event_bytes });
        }
        Ok(value)
    }

    fn set_id(&mut self, id: &[u8]) -> Result<(), ParseError> {
        let id = String::from_utf8_lossy(id);
        if id.len() > MAX_ID_BYTES {
            return Err(ParseError::IdTooLong { max_bytes: MAX_ID_BYTES });
        }
        if is_valid_id(&id) {
            self.id = Some(Arc::from(&*id));
        }
        Ok(())
    }

    fn end_event(&mut self) -> Option<Message> {
        if let Some(id) = self.id.take() {
            self.last_event_id = id;
        }
        // An event with an empty `data` field has one line feed here, and one without the field has none.
        if self.data.pop().is_none() {
            self.event.clear();
            return None;
        }
        let event = mem::take(&mut self.event);
        Some(Message {
            event: if event.is_empty() { Cow::Borrowed("message") } else { Cow::Owned(event) },
            data: mem::take(&mut self.data),
            last_event_id: Arc::clone(&self.last_event_id),
        })
    }
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns whether a header can carry the id.
pub(super) fn is_valid_id(id: &str) -> bool {
    id.len() <= MAX_ID_BYTES && !id.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control())
}

/// A stream exceeds a limit of the [`Parser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// A line is longer than an event may be.
    LineTooLong {
        /// The limit of an event.
        max_bytes: usize,
    },
    /// The type and the data of an event together are too long.
    EventTooLong {
        /// The limit.
        max_bytes: usize,
    },
    /// An id is too long to be sent in a header.
    IdTooLong {
        /// The limit.
        max_bytes: usize,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineTooLong { max_bytes } => {
                write!(f, "a line is longer than an event of {max_bytes} bytes; raise max_event_bytes")
            }
            Self::EventTooLong { max_bytes } => {
                write!(f, "an event is longer than {max_bytes} bytes; raise max_event_bytes")
            }
            Self::IdTooLong { max_bytes } => write!(f, "the id of an event is longer than {max_bytes} bytes"),
        }
    }
}

impl Error for ParseError {}
