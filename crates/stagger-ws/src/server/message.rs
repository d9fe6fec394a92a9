use std::io;

use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{self, Message};

/// A message of some WebSocket library, as far as a [`Socket`](super::Socket) has to know it.
///
/// It is there for tungstenite's and, with the feature `axum`, for axum's.
pub trait SocketMessage: Sized {
    /// The errors of that library.
    type Error;

    /// A ping without a payload.
    fn ping() -> Self;

    /// A close frame. The reason has at most 123 bytes.
    fn close(code: u16, reason: String) -> Self;

    /// The code, if this is a close frame; 1005 if it has none.
    fn close_code(&self) -> Option<u16>;

    /// An error of ours in that library's words.
    fn io_error(error: io::Error) -> Self::Error;
}

/// RFC 6455, section 7.1.5: what stands for the code of a close frame without one.
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
