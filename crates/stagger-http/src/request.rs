//! Whether a request may be sent again, and how far it got.

use core::error::Error;
use core::fmt;
use std::io;

use http::{HeaderMap, Method};
use stagger::classify;

use crate::header::IDEMPOTENCY_KEY;

/// Whether, and why, a request may be sent more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Idempotency {
    /// Its method is idempotent (RFC 9110 §9.2.2).
    ByMethod,
    /// It carries an `Idempotency-Key`.
    ByKey,
    /// The application declares it idempotent, with `idempotent_if`.
    Declared,
    /// It is not idempotent: a retry is safe only if the server has not processed it.
    OnlyIfUnsent,
}

impl Idempotency {
    /// Determines the idempotency of a request from its method and headers.
    ///
    /// A request with an `Idempotency-Key` is idempotent [by key](Self::ByKey), whatever its method. Otherwise GET,
    /// HEAD, OPTIONS, TRACE, PUT and DELETE are idempotent [by method](Self::ByMethod).
    ///
    /// ```
    /// use http::{HeaderMap, Method};
    /// use stagger_http::Idempotency;
    ///
    /// assert_eq!(Idempotency::from_request(&Method::PUT, &HeaderMap::new()), Idempotency::ByMethod);
    /// assert_eq!(Idempotency::from_request(&Method::POST, &HeaderMap::new()), Idempotency::OnlyIfUnsent);
    /// ```
    #[must_use]
    pub fn from_request(method: &Method, headers: &HeaderMap) -> Self {
        if headers.contains_key(IDEMPOTENCY_KEY) {
            Self::ByKey
        } else if method.is_idempotent() {
            Self::ByMethod
        } else {
            Self::OnlyIfUnsent
        }
    }

    /// Returns whether a request that got as far as `progress` may be sent again.
    #[must_use]
    pub const fn allows_retry(self, progress: RequestProgress) -> bool {
        !matches!((self, progress), (Self::OnlyIfUnsent, RequestProgress::MaybeProcessed))
    }
}

impl fmt::Display for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByMethod => "its method is idempotent",
            Self::ByKey => "it carries an Idempotency-Key",
            Self::Declared => "it is declared idempotent",
            Self::OnlyIfUnsent => "it is not idempotent; add an Idempotency-Key or declare it with `idempotent_if`",
        })
    }
}

/// How far a failed request got. Together with its [`Idempotency`](crate::Idempotency) it decides whether a retry is
/// safe.
///
/// The enum is complete: a request was not sent, was sent without effect, or may have had an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestProgress {
    /// Nothing was sent: the connection was refused or never established. Any request is safe to retry.
    NotSent,
    /// The server may have processed some or all of the request.
    MaybeProcessed,
    /// The request was certainly not processed: it was cancelled before any of it was written, the server refused its
    /// stream or excluded it when it went away, or the server rejected it with a [reservation](crate::hint). Retried
    /// once per call without a delay, or at the reserved time; later ones wait like other failures.
    NotProcessed,
}

impl RequestProgress {
    /// Determines the progress from the first error in the [chain](classify::links) of `error` that tells it.
    ///
    /// | error | progress | feature |
    /// |---|---|---|
    /// | an I/O error that means that no connection was made | [`NotSent`](Self::NotSent) | |
    /// | hyper-util's client could not connect | [`NotSent`](Self::NotSent) | `hyper` |
    /// | hyper cancelled the request before it wrote any of it | [`NotProcessed`](Self::NotProcessed) | `hyper` |
    /// | the server refused the HTTP/2 stream, or excluded it when it went away | `NotProcessed` | `hyper` |
    /// | tower's `LoadShed` was overloaded | `NotProcessed` | `tower` |
    /// | the request's own body failed | [`MaybeProcessed`](Self::MaybeProcessed), whatever its cause | `hyper` |
    /// | any other | `MaybeProcessed` | |
    ///
    /// No connection was made if it was refused, the host or the network is unreachable, the network is down, or the
    /// address is not available. hyper cancels a request on a pooled connection that is found closed. HTTP/2 refuses a
    /// stream with `REFUSED_STREAM`, and goes away with GOAWAY. With hyper 1.12 on several threads there is a race: a
    /// stream that is written as the GOAWAY arrives can be reported as excluded, although the server has processed it.
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
    if let Some(progress) = crate::hyper::progress(link) {
        return Some(progress);
    }
    match link.downcast_ref() {
        Some(error) if is_unconnected(error) => Some(RequestProgress::NotSent),
        _ => None,
    }
}

/// Returns whether an I/O error means that no connection was made.
fn is_unconnected(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable | NetworkDown | AddrNotAvailable)
}
