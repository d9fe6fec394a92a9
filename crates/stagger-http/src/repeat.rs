use core::error::Error;
use core::fmt;
use std::io;

use http::{HeaderMap, Method};

/// The header that makes a request idempotent: the server carries out only the first with the same key.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// How far a request has come that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing of it was sent: the connection was refused, or never made. Safe to repeat whatever it is.
    No,
    /// Something of it may have been carried out.
    Perhaps,
    /// The server has certainly not processed it: a stream that it refused, a connection that was closed before it was
    /// used. Repeated at once, once.
    Unprocessed,
}

impl Sent {
    /// How far a request has come that failed with this error, by the I/O errors among it and its sources: a
    /// connection that was refused, or could not be made, has carried nothing. Without such an error: [`Perhaps`](Self::Perhaps).
    ///
    /// ```
    /// use std::io;
    /// use stagger_http::Sent;
    ///
    /// assert_eq!(Sent::of(&io::Error::from(io::ErrorKind::ConnectionRefused)), Sent::No);
    /// assert_eq!(Sent::of(&io::Error::from(io::ErrorKind::ConnectionReset)), Sent::Perhaps);
    /// ```
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable};
        let mut next = Some(error);
        while let Some(error) = next {
            let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
            if let Some(ConnectionRefused | HostUnreachable | NetworkUnreachable | NetworkDown | AddrNotAvailable) =
                kind
            {
                return Self::No;
            }
            next = error.source();
        }
        Self::Perhaps
    }
}

/// Whether a request may be sent a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repeat {
    /// Its method is idempotent: RFC 9110, 9.2.2.
    Method,
    /// It carries an `Idempotency-Key`.
    Key,
    /// The caller says so.
    Told,
    /// Only if nothing of it was sent.
    IfUnsent,
    /// It cannot be: its body was longer than what is kept of it, or has failed.
    BodyLost,
}

impl Repeat {
    /// What a request's method and headers say: GET, HEAD, OPTIONS, TRACE, PUT and DELETE are idempotent, and so is whatever
    /// carries an `Idempotency-Key`.
    ///
    /// ```
    /// use http::{HeaderMap, Method};
    /// use stagger_http::Repeat;
    ///
    /// assert_eq!(Repeat::of(&Method::PUT, &HeaderMap::new()), Repeat::Method);
    /// assert_eq!(Repeat::of(&Method::POST, &HeaderMap::new()), Repeat::IfUnsent);
    /// ```
    #[must_use]
    pub fn of(method: &Method, headers: &HeaderMap) -> Self {
        if method.is_idempotent() {
            Self::Method
        } else if headers.contains_key(IDEMPOTENCY_KEY) {
            Self::Key
        } else {
            Self::IfUnsent
        }
    }

    /// Whether it may be sent again after it has come so far.
    #[must_use]
    pub const fn allows(self, sent: Sent) -> bool {
        !matches!((self, sent), (Self::BodyLost, _) | (Self::IfUnsent, Sent::Perhaps))
    }
}

impl fmt::Display for Repeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => "its method is idempotent",
            Self::Key => "it carries an Idempotency-Key",
            Self::Told => "the caller says that it may be repeated",
            Self::BodyLost => "its body is longer than what is kept of it, or has failed",
            Self::IfUnsent => "it is not idempotent: give it an Idempotency-Key, or say that it may be repeated",
        })
    }
}
