use core::fmt;

use http::{HeaderMap, Method};

use crate::header::IDEMPOTENCY_KEY;
use crate::request::progress::RequestProgress;

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
    /// A request with an `Idempotency-Key` is idempotent [by key](Self::ByKey), whatever its method. Otherwise GET, HEAD,
    /// OPTIONS, TRACE, PUT and DELETE are idempotent [by method](Self::ByMethod).
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
