use core::fmt;

use http::header::LOCATION;
use http::{HeaderMap, Response, StatusCode};

/// The server's answer to a request for an upgrade that it did not grant.
#[derive(Clone)]
pub struct UpgradeRejected {
    status: StatusCode,
    headers: Box<HeaderMap>,
}

impl UpgradeRejected {
    pub(super) fn from_response<B>(response: &Response<B>) -> Self {
        Self { status: response.status(), headers: Box::new(response.headers().clone()) }
    }

    /// Its status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Its headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Where it points to, in full, if it points anywhere.
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        self.headers.get(LOCATION)?.to_str().ok()
    }
}

/// The status, and where it points to, without the query, which may carry a token.
impl fmt::Display for UpgradeRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused with {}", self.status)?;
        match self.location().and_then(|to| to.split(['?', '#']).next()) {
            Some(to) if self.status.is_redirection() => write!(f, ", to {:?}", without_user(to)),
            _ => Ok(()),
        }
    }
}

/// An address without what stands before an `@`.
fn without_user(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, rest)| rest)
}

/// What `Display` shows: headers may be secret.
impl fmt::Debug for UpgradeRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpgradeRejected({self})")
    }
}
