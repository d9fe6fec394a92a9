use core::time::Duration;

use super::Cause;

/// An attempt to connect has failed, or a connection is lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Closed {
    /// Why.
    pub cause: Cause,
    /// How long it is until the next attempt; `None` if there is none.
    pub retry_in: Option<Duration>,
    /// The number of the attempt that failed, or that had opened the connection.
    pub attempt: u32,
}
