use core::fmt;

use stagger::Rejected;

/// How a request ended for which there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// The service's own error, of the last attempt.
    Service(E),
    /// The circuit breaker was open, or the attempt took longer than it may.
    Refused(Rejected),
}

impl<E> Error<E> {
    /// The service's own error, if it is one.
    pub fn service(self) -> Option<E> {
        if let Self::Service(error) = self { Some(error) } else { None }
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(error) => error.fmt(f),
            Self::Refused(refused) => refused.fmt(f),
        }
    }
}

/// Nothing is put around the service's error: its source is this error's source.
impl<E: core::error::Error + 'static> core::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Service(error) => error.source(),
            Self::Refused(refused) => refused.source(),
        }
    }
}
