use core::error::Error;
use std::io;

use stagger::classify;

/// How far a failed request got. Together with its [`Idempotency`](crate::Idempotency) it decides whether a retry is safe.
///
/// The enum is complete: a request was not sent, was sent without effect, or may have had an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestProgress {
    /// Nothing was sent: the connection was refused or never established. Any request is safe to retry.
    NotSent,
    /// The server may have processed some or all of the request.
    MaybeProcessed,
    /// The server has certainly not processed the request: it refused the stream, closed the connection before reading, or
    /// rejected the request with a [reservation](crate::hint::reservation).
    /// Retried once per call without a delay, or at the reserved time; later ones wait like other failures.
    NotProcessed,
}

impl RequestProgress {
    /// Determines the progress from the I/O errors in the [chain](classify::links) of `error`.
    ///
    /// Returns [`NotSent`](Self::NotSent) if one of them means that no connection was made (refused, host or network
    /// unreachable, network down, address not available), and [`MaybeProcessed`](Self::MaybeProcessed) otherwise.
    ///
    /// ```
    /// use std::io;
    /// use stagger_http::RequestProgress;
    ///
    /// let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    /// assert_eq!(RequestProgress::from_error(&refused), RequestProgress::NotSent);
    /// let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    /// assert_eq!(RequestProgress::from_error(&reset), RequestProgress::MaybeProcessed);
    /// ```
    #[must_use]
    pub fn from_error(error: &(dyn Error + 'static)) -> Self {
        use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable};
        let not_sent = classify::links(error).filter_map(|link| link.downcast_ref::<io::Error>()).any(|error| {
            matches!(
                error.kind(),
                ConnectionRefused | HostUnreachable | NetworkUnreachable | NetworkDown | AddrNotAvailable
            )
        });
        if not_sent { Self::NotSent } else { Self::MaybeProcessed }
    }
}
