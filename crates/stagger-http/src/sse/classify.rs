use core::error::Error;
use std::io;
use std::time::SystemTime;

use http::StatusCode;
use stagger::reconnect::ReconnectDriver;
use stagger::time::Tokio;
use stagger::{Outcome, classify};

use super::event::{ConnectionError, StreamRejected};
use crate::hint::server_hint;
use crate::request::Idempotency;
use crate::status;

/// What the end of an attempt or of a stream means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Classification {
    /// The server ended it for good.
    NormalEnd,
    Failed(Outcome),
}

/// Classifies failures and counts rejected credentials.
#[derive(Clone, Copy, Debug)]
pub(super) struct Classifier {
    pub(super) max_auth_retries: u32,
    auth_rejections: u32,
    /// How the credentials were last rejected, if no stream has been opened since.
    pub(super) last_auth_rejection: Option<u16>,
}

impl Classifier {
    pub(super) const fn new(max_auth_retries: u32) -> Self {
        Self { max_auth_retries, auth_rejections: 0, last_auth_rejection: None }
    }

    /// Forgets rejected credentials, because a stream was opened or the user asked for a reconnect.
    pub(super) const fn reset(&mut self) {
        (self.auth_rejections, self.last_auth_rejection) = (0, None);
    }

    /// Classifies a cause by the retrier's rules, by what the HTTP client says, or by its kind.
    pub(super) fn classify(
        &mut self,
        cause: &ConnectionError,
        by_client: Option<Outcome>,
        driver: &ReconnectDriver<Tokio>,
    ) -> Classification {
        if let Some(outcome) = explicit_outcome(cause, driver).or(by_client) {
            return Classification::Failed(outcome);
        }
        match cause {
            ConnectionError::Rejected(rejected) => self.rejected(rejected),
            ConnectionError::ContentType { .. }
            | ConnectionError::InvalidRequest(_)
            | ConnectionError::InvalidPolicy(_)
            // The server would send the same event again.
            | ConnectionError::TooLong(_) => Classification::Failed(Outcome::Permanent),
            ConnectionError::Http(error) => Classification::Failed(client_error(&**error)),
            _ => Classification::Failed(Outcome::TRANSIENT),
        }
    }

    fn rejected(&mut self, rejected: &StreamRejected) -> Classification {
        let outcome = match rejected.status() {
            StatusCode::NO_CONTENT => return Classification::NormalEnd,
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => self.auth_rejected(status),
            // A success that is not a stream, or a redirect that is not followed, would be repeated.
            status if status.as_u16() < 400 => Outcome::Permanent,
            status => status::outcome(status, Idempotency::ByMethod, server_hint(rejected.headers(), SystemTime::now)),
        };
        Classification::Failed(outcome)
    }

    /// Counts rejected credentials. Transient up to the limit, since fresh credentials may be accepted.
    const fn auth_rejected(&mut self, status: StatusCode) -> Outcome {
        self.auth_rejections = self.auth_rejections.saturating_add(1);
        self.last_auth_rejection = Some(status.as_u16());
        if self.auth_rejections > self.max_auth_retries { Outcome::Permanent } else { Outcome::TRANSIENT }
    }
}

/// Returns the outcome by the retrier's rules, if there is one for this error or for what it wraps.
fn explicit_outcome(cause: &ConnectionError, driver: &ReconnectDriver<Tokio>) -> Option<Outcome> {
    let explicit = driver.explicit_outcome(cause);
    match cause {
        ConnectionError::Http(error) | ConnectionError::Request(error) if explicit.is_none() => {
            driver.explicit_outcome(error)
        }
        _ => explicit,
    }
}

/// Classifies an error of the HTTP client. Unlike a single call, a long-lived client may outlast errors that classify
/// as permanent, such as an unknown host name. Only an address that cannot be connected to at all is permanent.
fn client_error(error: &(dyn Error + 'static)) -> Outcome {
    match classify::chain(error) {
        Some(Outcome::Permanent) if !is_invalid_address(error) => Outcome::TRANSIENT,
        outcome => outcome.unwrap_or(Outcome::TRANSIENT),
    }
}

fn is_invalid_address(error: &(dyn Error + 'static)) -> bool {
    let mut io = classify::links(error).filter_map(|link| link.downcast_ref::<io::Error>());
    io.any(|error| error.kind() == io::ErrorKind::InvalidInput)
}
