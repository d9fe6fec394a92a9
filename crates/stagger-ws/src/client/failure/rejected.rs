use core::fmt;

use http::header::LOCATION;
use http::{HeaderMap, Response, StatusCode};

/// The server's response to an upgrade request that it rejected.
#[derive(Clone)]
pub struct UpgradeRejected {
    status: StatusCode,
    headers: Box<HeaderMap>,
}

impl UpgradeRejected {
    pub(in crate::client) fn from_response<B>(response: &Response<B>) -> Self {
        Self { status: response.status(), headers: Box::new(response.headers().clone()) }
    }

    /// Returns the status code.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the complete `Location` header, if there is a valid one.
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        self.headers.get(LOCATION)?.to_str().ok()
    }
}

/// Shows the status and the redirect target. Leaves out the query, which may contain a token.
impl fmt::Display for UpgradeRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "upgrade rejected with {}", self.status)?;
        match self.location().and_then(|to| to.split(['?', '#']).next()) {
            Some(to) if self.status.is_redirection() => write!(f, ", to {:?}", without_user(to)),
            _ => Ok(()),
        }
    }
}

/// Returns the address without the user information before the `@`.
fn without_user(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, rest)| rest)
}

/// Shows the same as `Display`, since headers may contain secrets.
impl fmt::Debug for UpgradeRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpgradeRejected({self})")
    }
}
