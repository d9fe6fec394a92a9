//! The errors of the client: why a connection failed, and why the client gave up.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use http::header::LOCATION;
use http::{HeaderMap, Response, StatusCode};
use stagger::{Rejected, reconnect};
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::{Error as WsError, Utf8Bytes};

use crate::advice::ReconnectAdvice;

/// The reason why an attempt to connect failed, or why a connection ended.
///
/// Neither `Display` nor `Debug` includes any part of a request: no path, no query, no header; nor the token of a
/// reservation.
#[derive(Clone)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The server closed the connection with a close frame.
    Closed {
        /// The close code; 1005 if the frame had none.
        code: u16,
        /// The close reason, at most 123 bytes, often empty.
        reason: Utf8Bytes,
    },
    /// The byte stream ended without a close frame (1006), or during the handshake.
    Lost,
    /// Name resolution, connecting, reading or writing failed.
    Io(Arc<io::Error>),
    /// TLS failed permanently: a bad certificate, a wrong name, no common version. I/O errors during the TLS handshake
    /// are [`Io`](Self::Io).
    Tls(Arc<io::Error>),
    /// The server violated the WebSocket protocol, or did not agree to what was requested.
    Protocol(ProtocolError),
    /// The server sent more than the configured limits accept.
    TooLong(CapacityError),
    /// The server sent a text message that is not UTF-8.
    InvalidUtf8,
    /// The server rejected the upgrade request.
    Rejected(UpgradeRejected),
    /// The request provider failed. [`source`](Error::source) is its error.
    Request(Arc<dyn Error + Send + Sync>),
    /// The request cannot be sent: no host, a scheme other than `ws` and `wss`, or `wss` without the feature `rustls`.
    InvalidRequest(&'static str),
    /// The message does not fit into the write buffer. The connection stays open.
    WriteBufferFull,
    /// The attempt exceeded the connect timeout.
    ConnectTimeout {
        /// The connect timeout.
        after: Duration,
    },
    /// The peer did not respond to a keepalive ping, or to anything else.
    KeepaliveTimeout {
        /// The minimum time without a frame.
        after: Duration,
    },
    /// The server did not acknowledge a message in time; see [`Acks::ack_timeout`](crate::Acks::ack_timeout).
    AckTimeout {
        /// The acknowledgement timeout.
        after: Duration,
    },
    /// The server rejected the position of the last connection:
    /// [`ResumeStatus::Rejected`](crate::ResumeStatus::Rejected).
    ResumeRejected,
    /// The server sent more than [`inbox_bytes`](crate::ClientBuilder::inbox_bytes) before it had accepted or rejected
    /// the position of the last connection.
    ResumeTooLong {
        /// The limit.
        max_bytes: usize,
    },
    /// The guard of this name of the client's [`Retrier`](stagger::Retrier) rejected the attempt to connect.
    ByGuard {
        /// The name of the guard, such as `breaker`.
        guard: &'static str,
        /// In how long the attempt could have started, as far as is known.
        retry_in: Duration,
    },
    /// This side dropped, closed or replaced the connection.
    ClosedLocally,
}

impl ConnectionError {
    /// Returns the code of the close frame, if there was one.
    #[must_use]
    pub const fn close_code(&self) -> Option<u16> {
        match self {
            Self::Closed { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Returns a lower-case label for metrics and logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
            Self::Lost => "lost",
            Self::Io(_) => "io",
            Self::Tls(_) => "tls",
            Self::Protocol(_) | Self::TooLong(_) | Self::InvalidUtf8 | Self::ResumeTooLong { .. } => "protocol",
            Self::Rejected(_) => "rejected",
            Self::Request(_) | Self::InvalidRequest(_) => "request",
            Self::ConnectTimeout { .. } => "connect_timeout",
            Self::KeepaliveTimeout { .. } => "keepalive_timeout",
            Self::AckTimeout { .. } => "ack_timeout",
            Self::WriteBufferFull => "write_buffer_full",
            Self::ResumeRejected => "resume_rejected",
            Self::ByGuard { .. } => "guard",
            Self::ClosedLocally => "closed_locally",
        }
    }

    /// Converts an error of tungstenite. Drops most of what tungstenite would print of a request.
    pub(super) fn from_tungstenite(error: WsError) -> Self {
        match error {
            WsError::Io(error) => Self::from_io(error),
            WsError::Http(response) => Self::Rejected(UpgradeRejected::from_response(&response)),
            WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake | ProtocolError::HandshakeIncomplete)
            | WsError::ConnectionClosed
            | WsError::AlreadyClosed => Self::Lost,
            WsError::Protocol(error) => Self::Protocol(error),
            WsError::Capacity(error) => Self::TooLong(error),
            // The handshake is too long, or arrived in too many pieces.
            WsError::AttackAttempt => Self::TooLong(CapacityError::TooManyHeaders),
            WsError::Utf8(_) => Self::InvalidUtf8,
            WsError::WriteBufferFull(_) => Self::WriteBufferFull,
            WsError::Url(_) => Self::InvalidRequest("the URL is not a WebSocket URL"),
            WsError::HttpFormat(_) => Self::InvalidRequest("the request is not valid HTTP"),
            WsError::Tls(_) => Self::InvalidRequest("TLS is not available"),
        }
    }

    /// Converts an I/O error. TLS reports its errors as I/O errors, too.
    pub(super) fn from_io(error: io::Error) -> Self {
        #[cfg(feature = "rustls")]
        if super::tls::is_permanent(&error) {
            return Self::Tls(Arc::new(error));
        }
        Self::Io(Arc::new(error))
    }
}

/// A lower-case fragment, for example `closed by the server with 1008 "policy"`.
impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { code, reason } if reason.is_empty() => write!(f, "closed by the server with {code}"),
            // Printed with `Debug`, so that the server cannot inject lines into a log.
            Self::Closed { code, reason } => {
                write!(f, "closed by the server with {code} {:?}", ReconnectAdvice::without_token(reason))
            }
            Self::Lost => f.write_str("the connection ended without a close frame"),
            Self::Io(error) => write!(f, "{error}"),
            Self::Tls(error) => write!(f, "TLS: {error}"),
            Self::Protocol(error) => write!(f, "WebSocket protocol violated: {error}"),
            Self::TooLong(error) => write!(f, "size limit exceeded: {error}"),
            Self::InvalidUtf8 => f.write_str("received a text message that is not UTF-8"),
            Self::Rejected(refusal) => write!(f, "{refusal}"),
            Self::Request(_) => f.write_str("the request provider failed"),
            Self::InvalidRequest(why) => write!(f, "invalid request: {why}"),
            Self::ConnectTimeout { after } => write!(f, "connect timeout after {} s", after.as_secs_f64()),
            Self::KeepaliveTimeout { after } => write!(f, "no frame from the peer for {} s", after.as_secs_f64()),
            Self::AckTimeout { after } => write!(f, "no acknowledgement for {} s", after.as_secs_f64()),
            Self::WriteBufferFull => f.write_str("the message exceeds the write buffer; raise max_write_buffer_size"),
            Self::ResumeRejected => f.write_str("the server rejected the resume position"),
            Self::ResumeTooLong { max_bytes } => {
                write!(f, "the server sent more than {max_bytes} bytes before it decided about the resume")
            }
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
            Self::Io(error) | Self::Tls(error) => error.source(),
            Self::Request(error) => Some(error.as_ref()),
            _ => None,
        }
    }
}

/// The server's response to an upgrade request that it rejected.
#[derive(Clone)]
pub struct UpgradeRejected {
    status: StatusCode,
    headers: Box<HeaderMap>,
}

impl UpgradeRejected {
    fn from_response<B>(response: &Response<B>) -> Self {
        Self { status: response.status(), headers: Box::new(response.headers().clone()) }
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

    /// Returns the complete `Location` header, if there is a valid one.
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        self.headers.get(LOCATION)?.to_str().ok()
    }
}

/// Shows the status and the redirect target. Leaves out the query, which may contain a token.
impl fmt::Display for UpgradeRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "upgrade rejected with {}", self.status)?;
        if let (true, Some(to)) = (self.status.is_redirection(), self.location()) {
            let path = to.split(['?', '#']).next().unwrap_or_default();
            write!(f, ", to {:?}", without_user(path))?;
        }
        Ok(())
    }
}

/// Returns the address without the user information before the `@`.
fn without_user(address: &str) -> &str {
    match address.rsplit_once('@') {
        Some((_, rest)) => rest,
        None => address,
    }
}

/// Shows the same as `Display`, since headers may contain secrets.
impl fmt::Debug for UpgradeRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpgradeRejected({self})")
    }
}

/// The details of a failed attempt or a lost connection.
pub type Closed = reconnect::Closed<ConnectionError>;

/// The error of a client that has given up: the last failure was permanent, or a limit of the policy was reached.
///
/// [`source`](Error::source) is the last [`ConnectionError`].
pub type Fatal = reconnect::Fatal<ConnectionError>;
