use mysql_async::{DriverError, Error, IoError};
use stagger::{Outcome, classify};

/// By the number of the server; without one, by the I/O error.
pub(crate) fn mysql_async(error: &Error) -> Outcome {
    match error {
        Error::Server(error) => classify::mysql(error.code),
        Error::Io(IoError::Io(error)) => classify::io(error),
        Error::Driver(DriverError::ConnectionClosed) => Outcome::TRANSIENT,
        _ => Outcome::Permanent,
    }
}
