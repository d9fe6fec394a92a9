use core::error::Error;
use core::fmt;

use stagger::StopReason;

use super::connection_error::ConnectionError;

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
    pub(in crate::client) const fn new(stop_reason: StopReason, cause: ConnectionError, attempts: u32) -> Self {
        Self { stop_reason, cause, attempts }
    }

    /// Creates the error for a client that was closed on this side.
    pub(in crate::client) const fn closed_locally() -> Self {
        Self::new(StopReason::Cancelled, ConnectionError::ClosedLocally, 0)
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

    /// Returns the number of attempts since the last healthy connection.
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
        stagger::classify::provide_stop_reason(self.stop_reason);
        Some(&self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_reason_finds_why_a_client_gave_up_through_boxes() {
        for (fatal, want) in [
            (Fatal::closed_locally(), StopReason::Cancelled),
            (Fatal::new(StopReason::Attempts, ConnectionError::ClosedLocally, 3), StopReason::Attempts),
        ] {
            let boxed: Box<dyn Error> = std::io::Error::other(fatal).into();
            assert_eq!(stagger::stop_reason(&*boxed), Some(want));
        }
    }
}
