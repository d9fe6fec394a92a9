use core::fmt;

use http::StatusCode;

use crate::Repeat;

/// An answer that counts as a failure, as it is told to listeners: [`Event::error_as`](stagger::observe::Event::error_as).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusFailure {
    /// Its status.
    pub status: StatusCode,
    /// Whether its request may be sent again.
    pub repeat: Repeat,
}

impl fmt::Display for StatusFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server answered {}; as to repeating the request: {}", self.status, self.repeat)
    }
}

impl core::error::Error for StatusFailure {}
