use core::time::Duration;

use stagger::machine::Unreachable;

use super::connection_error::ConnectionError;

/// The details of a failed attempt or a lost connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Closed {
    /// The reason.
    pub cause: ConnectionError,
    /// Time until the next attempt; `None` if there is none.
    pub retry_in: Option<Duration>,
    /// The number of the attempt that failed, or that had opened the connection.
    pub attempt: u32,
    /// For how long and how many attempts the server could not be reached, if at least ten attempts in a row have
    /// failed.
    pub unreachable: Option<Unreachable>,
}
