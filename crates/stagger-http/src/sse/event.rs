//! What a client reports: its events, and why an attempt failed or a stream ended.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};
use stagger::machine::Unreachable;
use stagger::{PolicyError, Rejected, display_chain, reconnect};

use super::parser::{Message, ParseError};

/// Something that happened to a client. Events are returned in order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A stream was opened.
    Open(Opened),
    /// An event of the stream was received.
    Message(Message),
    /// An attempt failed, or the stream ended.
    Closed(Closed),
    /// The server could not be reached for ten attempts in a row, or for twice as long as at the last event of this
    /// kind. The client continues to reconnect: show it to the user until the next [`Open`](Self::Open).
    ///
    /// Comes after the [`Closed`](Self::Closed) of the attempt.
    Unreachable(Unreachable),
    /// The server asked for a longer wait, with `retry`, than the client accepts. Returned once per stream.
    RetryCapped {
        /// The wait that the server asked for.
        asked: Duration,
        /// The wait that is used instead: see [`ClientBuilder::max_retry`](super::ClientBuilder::max_retry).
        used: Duration,
    },
}

/// The details of an opened stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The number of the attempt that opened it, from 1. The count restarts after a healthy stream.
    pub attempt: u32,
    /// The head of the server's response.
    pub response: Response<()>,
    /// Time without a stream before this one; `None` for the first.
    pub downtime: Option<Duration>,
}

/// The details of a failed attempt or of a stream that ended.
pub type Closed = reconnect::Closed<ConnectionError>;

/// The error of a client that has given up: the last failure was permanent, or a limit of the policy was reached.
///
/// [`source`](Error::source) is the last [`ConnectionError`].
pub type Fatal = reconnect::Fatal<ConnectionError>;

/// The error of a request provider or of an HTTP client.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The most characters of a content type that are kept.
const MAX_CONTENT_TYPE: usize = 128;

/// The reason why an attempt to connect failed, or why a stream ended.
///
/// Neither `Display` nor `Debug` includes any part of a request: no URL, no header. An error of an HTTP client is shown
/// as it is; reqwest's have no URL here.
#[derive(Clone)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The server ended the stream.
    Ended,
    /// The HTTP client could not send the request, or lost the connection. [`source`](Error::source) is its error.
    Http(Arc<dyn Error + Send + Sync>),
    /// The server answered with another status than 200. With 204, it ends the stream for good.
    Rejected(StreamRejected),
    /// The response is not an event stream.
    ContentType {
        /// Its content type, at most 128 characters of it; empty if it has none.
        content_type: String,
    },
    /// The stream exceeds a limit.
    TooLong(ParseError),
    /// The request provider failed. [`source`](Error::source) is its error.
    Request(Arc<dyn Error + Send + Sync>),
    /// The request cannot be sent: there is no valid URL, or the initial id of the last event cannot be sent in a
    /// header.
    InvalidRequest(&'static str),
    /// The policy is invalid with the builder's spread or `stable_after`.
    InvalidPolicy(PolicyError),
    /// The next request was not sent, since it is not idempotent, and the server may have processed an earlier one.
    UnsafeToRetry,
    /// The head of the response did not arrive within the connect timeout.
    ConnectTimeout {
        /// The connect timeout.
        after: Duration,
    },
    /// The server did not end a line, not even a comment, within the idle timeout.
    IdleTimeout {
        /// The idle timeout.
        after: Duration,
    },
    /// The guard of this name of the client's [`Retrier`](stagger::Retrier) rejected the attempt to connect.
    ByGuard {
        /// The name of the guard, such as `breaker`.
        guard: &'static str,
        /// In how long the attempt could have started, as far as is known.
        retry_in: Duration,
    },
    /// This side closed or replaced the stream.
    ClosedLocally,
}

impl ConnectionError {
    /// Returns a lower-case label for metrics and logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Http(_) => "http",
            Self::Rejected(_) => "rejected",
            Self::ContentType { .. } => "content_type",
            Self::TooLong(_) => "too_long",
            Self::Request(_) | Self::InvalidRequest(_) => "request",
            Self::InvalidPolicy(_) => "policy",
            Self::UnsafeToRetry => "unsafe_to_retry",
            Self::ConnectTimeout { .. } => "connect_timeout",
            Self::IdleTimeout { .. } => "idle_timeout",
            Self::ByGuard { .. } => "guard",
            Self::ClosedLocally => "closed_locally",
        }
    }

    pub(super) fn content_type(content_type: &[u8]) -> Self {
        let text = String::from_utf8_lossy(content_type);
        Self::ContentType { content_type: text.chars().take(MAX_CONTENT_TYPE).collect() }
    }
}

/// A lower-case fragment, for example `rejected with 503 Service Unavailable`.
impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the server ended the stream"),
            // The error of a client seldom says what its cause is.
            Self::Http(error) => write!(f, "{}", display_chain(&**error)),
            Self::Rejected(rejected) => write!(f, "{rejected}"),
            Self::ContentType { content_type } if content_type.is_empty() => {
                f.write_str("the response has no content type; expected text/event-stream")
            }
            // Printed with `Debug`, so that the server cannot inject lines into a log.
            Self::ContentType { content_type } => {
                write!(f, "the response is {content_type:?}; expected text/event-stream")
            }
            Self::TooLong(error) => write!(f, "{error}"),
            Self::Request(_) => f.write_str("the request provider failed"),
            Self::InvalidRequest(why) => write!(f, "invalid request: {why}"),
            Self::InvalidPolicy(error) => write!(f, "invalid policy: {error}"),
            Self::UnsafeToRetry => f.write_str(
                "the request was not sent again: it is not idempotent; add an Idempotency-Key, continue with a GET, \
                 or call `idempotent`",
            ),
            Self::ConnectTimeout { after } => write!(f, "connect timeout after {} s", after.as_secs_f64()),
            Self::IdleTimeout { after } => write!(f, "no line from the server for {} s", after.as_secs_f64()),
            Self::ByGuard { guard, retry_in } => Rejected::ByGuard { guard, retry_in: *retry_in }.fmt(f),
            Self::ClosedLocally => f.write_str("closed by this side"),
        }
    }
}

impl fmt::Debug for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConnectionError").field(&self.name()).field(&format_args!("{self}")).finish()
    }
}

impl Error for ConnectionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Http(error) | Self::Request(error) => Some(error.as_ref()),
            Self::InvalidPolicy(error) => Some(error),
            _ => None,
        }
    }
}

/// A response with another status than 200.
#[derive(Clone)]
pub struct StreamRejected {
    status: StatusCode,
    headers: Box<HeaderMap>,
}

impl StreamRejected {
    pub(super) fn new(status: StatusCode, headers: HeaderMap) -> Self {
        Self { status, headers: Box::new(headers) }
    }

    /// Returns the status code.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

impl fmt::Display for StreamRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            StatusCode::NO_CONTENT => f.write_str("the server ended the stream for good, with 204 No Content"),
            status => write!(f, "rejected with {status}"),
        }
    }
}

/// Shows the same as `Display`, since headers may contain secrets.
impl fmt::Debug for StreamRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamRejected({self})")
    }
}
