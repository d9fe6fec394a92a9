use core::error::Error;
use core::fmt;
use std::io;

use http::{HeaderMap, Method};

/// The header that makes a request idempotent: the server carries out only the first with the same key.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// How far a request has come that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestProgress {
    /// Nothing of it was sent: the connection was refused, or never made. Safe to repeat whatever it is.
    NotSent,
    /// Something of it may have been carried out.
    MaybeProcessed,
    /// The server has certainly not processed it: a stream that it refused, a connection that was closed before it was
    /// used. Repeated at once, once.
    NotProcessed,
}

impl RequestProgress {
    /// How far a request has come that failed with this error, by the I/O errors among it and its sources: a
    /// connection that was refused, or could not be made, has carried nothing. Without such an error: [`MaybeProcessed`](Self::MaybeProcessed).
    ///
    /// ```
    /// use std::io;
    /// use stagger_http::RequestProgress;
    ///
    /// assert_eq!(RequestProgress::from_error(&io::Error::from(io::ErrorKind::ConnectionRefused)), RequestProgress::NotSent);
    /// assert_eq!(RequestProgress::from_error(&io::Error::from(io::ErrorKind::ConnectionReset)), RequestProgress::MaybeProcessed);
    /// ```
    #[must_use]
    pub fn from_error(error: &(dyn Error + 'static)) -> Self {
        use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable};
        let mut next = Some(error);
        while let Some(error) = next {
            let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
            if let Some(ConnectionRefused | HostUnreachable | NetworkUnreachable | NetworkDown | AddrNotAvailable) =
                kind
            {
                return Self::NotSent;
            }
            next = error.source();
        }
        Self::MaybeProcessed
    }
}

/// Whether a request may be sent a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Idempotency {
    /// Its method is idempotent: RFC 9110, 9.2.2.
    ByMethod,
    /// It carries an `Idempotency-Key`.
    ByKey,
    /// The caller says so.
    Declared,
    /// Only if nothing of it was sent.
    OnlyIfUnsent,
    /// It cannot be: its body was longer than what is kept of it, or has failed.
    BodyLost,
}

impl Idempotency {
    /// What a request's method and headers say: GET, HEAD, OPTIONS, TRACE, PUT and DELETE are idempotent, and so is whatever
    /// carries an `Idempotency-Key`.
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
        if method.is_idempotent() {
            Self::ByMethod
        } else if headers.contains_key(IDEMPOTENCY_KEY) {
            Self::ByKey
        } else {
            Self::OnlyIfUnsent
        }
    }

    /// Whether it may be sent again after it has come so far.
    #[must_use]
    pub const fn allows_retry(self, progress: RequestProgress) -> bool {
        !matches!((self, progress), (Self::BodyLost, _) | (Self::OnlyIfUnsent, RequestProgress::MaybeProcessed))
    }
}

impl fmt::Display for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByMethod => "its method is idempotent",
            Self::ByKey => "it carries an Idempotency-Key",
            Self::Declared => "the caller says that it may be repeated",
            Self::BodyLost => "its body is longer than what is kept of it, or has failed",
            Self::OnlyIfUnsent => "it is not idempotent: give it an Idempotency-Key, or say that it may be repeated",
        })
    }
}
