use core::error::Error;
use core::fmt;
use core::time::Duration;

use http::Response;
use stagger::StopReason;
use stagger::machine::Unreachable;

use super::error::ConnectionError;
use super::parser::Message;

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
    /// The server could not be reached for ten attempts in a row, or for twice as long as at the last event of this kind.
    /// The client continues to reconnect: show it to the user until the next [`Open`](Self::Open).
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
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Closed {
    /// The reason.
    pub cause: ConnectionError,
    /// Time until the next attempt; `None` if there is none.
    pub retry_in: Option<Duration>,
    /// The number of the attempt that failed, or that had opened the stream.
    pub attempt: u32,
    /// For how long and how many attempts the server could not be reached, if at least ten attempts in a row have
    /// failed.
    pub unreachable: Option<Unreachable>,
}

/// The error of a client that has given up: the last failure was permanent, or a limit of the policy was reached.
///
/// [`source`](Error::source) is the last [`ConnectionError`].
#[derive(Clone, Debug)]
pub struct Fatal {
    stop_reason: StopReason,
    cause: ConnectionError,
    attempts: u32,
}

impl Fatal {
    pub(super) const fn new(stop_reason: StopReason, cause: ConnectionError, attempts: u32) -> Self {
        Self { stop_reason, cause, attempts }
    }

    /// Returns the reason for giving up: [`StopReason::Permanent`] if another attempt would fail in the same way.
    #[must_use]
    pub const fn stop_reason(&self) -> StopReason {
        self.stop_reason
    }

    /// Returns the last failure.
    #[must_use]
    pub const fn cause(&self) -> &ConnectionError {
        &self.cause
    }

    /// Returns the number of attempts since the last healthy stream.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }
}

/// `gave up after 10 attempts, every attempt was used`; with `{:#}`, followed by the last failure.
impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {} attempt{s}, {}", self.attempts, self.stop_reason)?;
        if f.alternate() { write!(f, ": {}", self.cause) } else { Ok(()) }
    }
}

impl Error for Fatal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
