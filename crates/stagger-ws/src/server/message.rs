use std::io;

use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{self, Message};

/// A message type of a WebSocket library, as far as [`Socket`](super::Socket) needs it.
///
/// Implemented for tungstenite's and, with the feature `axum`, for axum's messages.
pub trait SocketMessage: Sized {
    /// The library's error type.
    type Error;

    /// Creates a ping without a payload.
    fn ping() -> Self;

    /// Creates a close frame. The reason has at most 123 bytes.
    fn close(code: u16, reason: String) -> Self;

    /// Returns the close code if this is a close frame; 1005 if the frame has none.
    fn close_code(&self) -> Option<u16>;

    /// Converts an I/O error into the library's error type.
    fn io_error(error: io::Error) -> Self::Error;
}

/// The code that stands for a close frame without one: RFC 6455, section 7.1.5.
pub(super) const NO_CODE: u16 = 1005;

impl SocketMessage for Message {
    type Error = tungstenite::Error;

    fn ping() -> Self {
        Self::Ping(tungstenite::Bytes::new())
    }

    fn close(code: u16, reason: String) -> Self {
        Self::Close(Some(CloseFrame { code: code.into(), reason: reason.into() }))
    }

    fn close_code(&self) -> Option<u16> {
        match self {
            Self::Close(frame) => Some(frame.as_ref().map_or(NO_CODE, |frame| frame.code.into())),
            _ => None,
        }
    }

    fn io_error(error: io::Error) -> tungstenite::Error {
        error.into()
    }
}
