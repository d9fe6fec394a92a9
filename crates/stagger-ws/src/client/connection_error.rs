use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::{Error as WsError, Utf8Bytes};

use super::UpgradeRejected;

/// Why an attempt to connect failed, or a connection ended.
///
/// Neither `Display` nor `Debug` shows anything of a request: no path, no query, no header.
#[derive(Clone)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The server closed it, with a close frame.
    Closed {
        /// The code; 1005 if there was none in the frame.
        code: u16,
        /// What the server says about it: at most 123 bytes, often none.
        reason: Utf8Bytes,
    },
    /// The stream of bytes ended without a close frame (1006), or in the middle of the handshake.
    Lost,
    /// Name resolution, connecting, reading or writing failed.
    Io(Arc<io::Error>),
    /// TLS refused the server, or the server refused TLS: a bad certificate, a wrong name, no common version. Input and
    /// output that failed during the TLS handshake is [`Io`](Self::Io).
    Tls(Arc<io::Error>),
    /// What the server sent is not the WebSocket protocol, or not what was asked for.
    Protocol(ProtocolError),
    /// What the server sent is longer than what is accepted.
    TooLong(CapacityError),
    /// The server sent a text that is not UTF-8.
    InvalidUtf8,
    /// The server refused the upgrade.
    Rejected(UpgradeRejected),
    /// The request could not be made: [`source`](Error::source) is what the provider said.
    Request(Arc<dyn Error + Send + Sync>),
    /// The request cannot be sent: no host, another scheme than `ws` and `wss`, `wss` without the feature `rustls`.
    InvalidRequest(&'static str),
    /// It took longer than the connect timeout.
    ConnectTimeout {
        /// How long that is.
        after: Duration,
    },
    /// The peer fell silent: nothing came for so long, not even an answer to a ping.
    KeepaliveTimeout {
        /// For how long at least.
        after: Duration,
    },
    /// The peer acknowledged nothing: a message was sent so long ago.
    AckTimeout {
        /// How long it was waited for.
        after: Duration,
    },
    /// The server does not go on where the last connection left off: [`ResumeStatus::Rejected`](crate::ResumeStatus::Rejected).
    ResumeRejected,
    /// This side let go of it: it was dropped, closed or replaced.
    ClosedLocally,
}

impl ConnectionError {
    /// The code of the close frame, if there was one.
    #[must_use]
    pub const fn close_code(&self) -> Option<u16> {
        match self {
            Self::Closed { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// What went wrong as one lower-case word, for metrics and logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
            Self::Lost => "lost",
            Self::Io(_) => "io",
            Self::Tls(_) => "tls",
            Self::Protocol(_) | Self::TooLong(_) | Self::InvalidUtf8 => "protocol",
            Self::Rejected(_) => "rejected",
            Self::Request(_) | Self::InvalidRequest(_) => "request",
            Self::ConnectTimeout { .. } => "connect_timeout",
            Self::KeepaliveTimeout { .. } => "keepalive_timeout",
            Self::AckTimeout { .. } => "ack_timeout",
            Self::ResumeRejected => "resume_rejected",
            Self::ClosedLocally => "closed_locally",
        }
    }

    /// What an error of reading, writing or connecting says. Most of what tungstenite would print of a request is
    /// dropped here.
    pub(super) fn from_tungstenite(error: WsError) -> Self {
        match error {
            WsError::Io(error) => Self::from_io(error),
            WsError::Http(response) => Self::Rejected(UpgradeRejected::from_response(&response)),
            WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake | ProtocolError::HandshakeIncomplete)
            | WsError::ConnectionClosed
            | WsError::AlreadyClosed => Self::Lost,
            WsError::Protocol(error) => Self::Protocol(error),
            WsError::Capacity(error) => Self::TooLong(error),
            // A handshake that is too long or comes in too many pieces.
            WsError::AttackAttempt => Self::TooLong(CapacityError::TooManyHeaders),
            WsError::Utf8(_) => Self::InvalidUtf8,
            WsError::WriteBufferFull(_) => Self::InvalidRequest("the write buffer is full"),
            WsError::Url(_) => Self::InvalidRequest("the address is not that of a WebSocket"),
            WsError::HttpFormat(_) => Self::InvalidRequest("the request is not one of HTTP"),
            WsError::Tls(_) => Self::InvalidRequest("TLS was not to be had"),
        }
    }

    /// What an error of input and output says; TLS tells its own by that way too.
    pub(super) fn from_io(error: io::Error) -> Self {
        if super::tls::is_permanent(&error) { Self::Tls(Arc::new(error)) } else { Self::Io(Arc::new(error)) }
    }
}

/// A lower-case fragment: "closed by the server with 1008 \"policy\"".
impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { code, reason } if reason.is_empty() => write!(f, "closed by the server with {code}"),
            // As a debug string, so that the server cannot write lines of its own into a log.
            Self::Closed { code, reason } => write!(f, "closed by the server with {code} {:?}", reason.as_str()),
            Self::Lost => f.write_str("the connection ended without a close frame"),
            Self::Io(error) => write!(f, "{error}"),
            Self::Tls(error) => write!(f, "TLS: {error}"),
            Self::Protocol(error) => write!(f, "not the WebSocket protocol: {error}"),
            Self::TooLong(error) => write!(f, "longer than what is accepted: {error}"),
            Self::InvalidUtf8 => f.write_str("a text that is not UTF-8"),
            Self::Rejected(refusal) => write!(f, "{refusal}"),
            Self::Request(_) => f.write_str("the request could not be made"),
            Self::InvalidRequest(why) => write!(f, "the request cannot be sent: {why}"),
            Self::ConnectTimeout { after } => write!(f, "no connection after {} s", after.as_secs_f64()),
            Self::KeepaliveTimeout { after } => write!(f, "the peer was silent for {} s", after.as_secs_f64()),
            Self::AckTimeout { after } => write!(f, "nothing was acknowledged for {} s", after.as_secs_f64()),
            Self::ResumeRejected => f.write_str("the server does not go on where the last connection left off"),
            Self::ClosedLocally => f.write_str("let go of by this side"),
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
