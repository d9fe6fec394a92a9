//! What a client that keeps a connection open reports: the end of an attempt or of a connection, and that it gave up.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use stagger_core::StopReason;
use stagger_core::machine::Unreachable;

use crate::error::links::provide_stop_reason;

/// The details of a failed attempt or of a connection that ended. `E` is the error of the client's connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Closed<E> {
    /// The reason.
    pub cause: E,
    /// Time until the next attempt; `None` if there is none.
    pub retry_in: Option<Duration>,
    /// The number of the attempt that failed, or that had opened the connection.
    pub attempt: u32,
    /// For how long and how many attempts the server could not be reached, if at least ten attempts in a row have
    /// failed.
    pub unreachable: Option<Unreachable>,
}

impl<E> Closed<E> {
    /// Creates the details from the fields, in their order.
    pub const fn new(cause: E, retry_in: Option<Duration>, attempt: u32, unreachable: Option<Unreachable>) -> Self {
        Self { cause, retry_in, attempt, unreachable }
    }
}

/// The error of a client that has given up: the last failure was permanent, or a limit of the policy was reached.
///
/// [`source`](Error::source) is the last failure. `E` is the error of the client's connections.
#[derive(Clone, Debug)]
pub struct Fatal<E> {
    stop_reason: StopReason,
    cause: E,
    attempts: u32,
}

impl<E> Fatal<E> {
    /// Creates the error from the reason for giving up, the last failure, and the number of attempts since the last
    /// healthy connection.
    pub const fn new(stop_reason: StopReason, cause: E, attempts: u32) -> Self {
        Self { stop_reason, cause, attempts }
    }

    /// Returns the reason for giving up: [`StopReason::Permanent`] if another attempt would fail in the same way.
    #[must_use]
    pub const fn stop_reason(&self) -> StopReason {
        self.stop_reason
    }

    /// Returns the last failure.
    #[must_use]
    pub const fn cause(&self) -> &E {
        &self.cause
    }

    /// Returns the number of attempts since the last healthy connection.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }
}

/// `gave up after 10 attempts, every attempt was used`; with `{:#}`, followed by the last failure.
impl<E: fmt::Display> fmt::Display for Fatal<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {} attempt{s}, {}", self.attempts, self.stop_reason)?;
        if f.alternate() { write!(f, ": {}", self.cause) } else { Ok(()) }
    }
}

impl<E: Error + 'static> Error for Fatal<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // So that `stop_reason` finds it through boxes, without knowing `E`.
        provide_stop_reason(self.stop_reason);
        Some(&self.cause)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn stop_reason_finds_why_a_client_gave_up_through_boxes() {
        for want in [StopReason::Cancelled, StopReason::Attempts] {
            let fatal = Fatal::new(want, io::Error::from(io::ErrorKind::ConnectionReset), 3);
            let boxed: Box<dyn Error> = io::Error::other(fatal).into();
            assert_eq!(crate::stop_reason(&*boxed), Some(want));
        }
    }
}
