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
    /// The request was certainly not processed: it was cancelled before any of it was written, the server refused its stream
    /// or excluded it when it went away, or the server rejected it with a [reservation](crate::hint::reservation).
    /// Retried once per call without a delay, or at the reserved time; later ones wait like other failures.
    NotProcessed,
}

impl RequestProgress {
    /// Determines the progress from the first error in the [chain](classify::links) of `error` that tells it.
    ///
    /// | error | progress | feature |
    /// |---|---|---|
    /// | an I/O error that means that no connection was made (refused, host or network unreachable, network down, address not available) | [`NotSent`](Self::NotSent) | |
    /// | hyper-util's client could not connect | [`NotSent`](Self::NotSent) | `hyper` |
    /// | hyper cancelled the request before it wrote any of it, such as on a pooled connection that is found closed | [`NotProcessed`](Self::NotProcessed) | `hyper` |
    /// | the server refused the HTTP/2 stream (`REFUSED_STREAM`), or went away (GOAWAY) and excluded it | `NotProcessed` | `hyper` |
    /// | tower's `LoadShed` was overloaded | `NotProcessed` | `tower` |
    /// | the request's own body failed | [`MaybeProcessed`](Self::MaybeProcessed), whatever its cause | `hyper` |
    /// | any other | `MaybeProcessed` | |
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
        classify::links(error).find_map(of_link).unwrap_or(Self::MaybeProcessed)
    }
}

/// Returns the progress that one error of a chain tells.
fn of_link(link: &(dyn Error + 'static)) -> Option<RequestProgress> {
    #[cfg(feature = "tower")]
    if link.is::<::tower::load_shed::error::Overloaded>() {
        return Some(RequestProgress::NotProcessed);
    }
    #[cfg(feature = "hyper")]
    if let Some(progress) = super::hyper::progress(link) {
        return Some(progress);
    }
    link.downcast_ref().filter(|error| is_unconnected(error)).map(|_| RequestProgress::NotSent)
}

/// Returns whether an I/O error means that no connection was made.
fn is_unconnected(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable | NetworkDown | AddrNotAvailable)
}
