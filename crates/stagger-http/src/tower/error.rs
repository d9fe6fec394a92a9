use core::fmt;

use stagger::Rejected;

/// The error of a request that ended without a response.
///
/// Either the service or the retrier ended it, so the enum is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// The service's own error, from the last attempt.
    Service(E),
    /// The circuit breaker was open, the deadline had passed, or the last attempt timed out.
    Rejected(Rejected),
}

impl<E> Error<E> {
    /// Returns the service's own error, if it is one.
    pub fn into_service_error(self) -> Option<E> {
        if let Self::Service(error) = self { Some(error) } else { None }
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(error) => error.fmt(f),
            Self::Rejected(refused) => refused.fmt(f),
        }
    }
}

/// Transparent for the service's error: the source is that error's source.
impl<E: core::error::Error + 'static> core::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Service(error) => error.source(),
            Self::Rejected(refused) => refused.source(),
        }
    }
}
