//! What the failure of an attempt or the end of a connection means for the next attempt.

use std::io;
use std::time::SystemTime;

use stagger::admission::ReservationToken;
use stagger::schedule::draw;
use stagger::{FailureKind, Outcome, ServerHint, classify};
use stagger_http::Idempotency;
use stagger_http::status::outcome;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};

use super::codes::{CloseAction, CloseCodes};
use super::failure::ConnectionError;
use crate::advice::ReconnectAdvice;

/// What the end of a connection means for the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Classification {
    /// The server ended it normally: no further connection is wanted.
    NormalEnd,
    /// It failed, or could not be opened.
    Failed(Outcome),
    /// Its server failed, so it does not count as healthy, however long it was up.
    ServerFailed,
}

/// Classifies failures and counts rejected credentials.
#[derive(Clone, Debug)]
pub(super) struct Classifier {
    pub(super) codes: CloseCodes,
    pub(super) max_auth_retries: u32,
    auth_rejections: u32,
    /// How the credentials were last rejected, if no connection has been opened since.
    pub(super) last_auth_rejection: Option<u16>,
}

impl Classifier {
    pub(super) const fn new(codes: CloseCodes) -> Self {
        Self { codes, max_auth_retries: 1, auth_rejections: 0, last_auth_rejection: None }
    }

    /// Releases unused capacity; every client has a classifier.
    pub(super) fn shrunk(mut self) -> Self {
        self.codes.shrink();
        self
    }

    /// Records that a connection was opened, so its credentials were accepted.
    pub(super) fn opened(&mut self) {
        self.last_auth_rejection = None;
    }

    /// Forgets rejected credentials, because the user asked for a reconnect.
    pub(super) fn reset(&mut self) {
        (self.auth_rejections, self.last_auth_rejection) = (0, None);
    }

    /// Classifies a failed attempt.
    pub(super) fn classify_attempt(&mut self, cause: &ConnectionError) -> Outcome {
        match cause {
            ConnectionError::Rejected(rejected) => match rejected.status().as_u16() {
                status @ (401 | 403) => self.auth_rejected(status),
                // A success that is not an upgrade, or a redirect that is not followed, would be repeated.
                ..=399 => Outcome::Permanent,
                _ => {
                    let hint = stagger_http::hint::server_hint(rejected.headers(), SystemTime::now);
                    outcome(rejected.status(), Idempotency::ByMethod, hint)
                }
            },
            ConnectionError::Tls(_) | ConnectionError::InvalidRequest(_)
            // These protocol errors are about the request; all others are transient.
            | ConnectionError::Protocol(
                ProtocolError::SecWebSocketSubProtocolError(_)
                | ProtocolError::InvalidHeader(_)
                | ProtocolError::WrongHttpMethod
                | ProtocolError::WrongHttpVersion,
            ) => Outcome::Permanent,
            ConnectionError::Io(error) => io_outcome(error),
            _ => Outcome::TRANSIENT,
        }
    }

    /// Classifies the end of an open connection. If it was `accepted`, its credentials were, and have expired since.
    /// Draws from `bits`.
    pub(super) fn classify_loss(&mut self, cause: &ConnectionError, accepted: bool, bits: u64) -> Classification {
        let action = match cause {
            ConnectionError::Closed { code, reason } => self.codes.action(*code, reason),
            // The server would send the same message again.
            ConnectionError::TooLong(CapacityError::MessageTooLong { .. }) => CloseAction::Fatal,
            // A connection that was not resumed was never in service, and a server that lost its history rejects every
            // client.
            ConnectionError::ResumeRejected
            | ConnectionError::ResumeTooLong { .. }
            | ConnectionError::ConnectTimeout { .. }
            | ConnectionError::Protocol(_)
            | ConnectionError::TooLong(_)
            | ConnectionError::InvalidUtf8 => CloseAction::ReconnectUnhealthy,
            _ => CloseAction::Reconnect,
        };
        // Only rejections in a row count. `last_auth_rejection` stays until a connection is open, for the provider.
        if accepted || action != CloseAction::Reauthenticate {
            self.auth_rejections = 0;
        }
        Classification::Failed(match action {
            CloseAction::End => return Classification::NormalEnd,
            CloseAction::ReconnectUnhealthy => return Classification::ServerFailed,
            CloseAction::Fatal => Outcome::Permanent,
            CloseAction::Reauthenticate => self.auth_rejected(cause.close_code().unwrap_or_default()),
            CloseAction::Reconnect => match cause {
                ConnectionError::Io(error) => io_outcome(error),
                _ => Outcome::TRANSIENT,
            },
            // Each client draws its own time and reconnects exactly then.
            CloseAction::ReconnectWithin { from, to } => {
                let hint = ServerHint::Reserved(draw(from, to.max(from), bits));
                Outcome::Failed { kind: FailureKind::Throttled, hint: Some(hint) }
            }
        })
    }

    /// Counts rejected credentials. Transient up to the limit, since fresh credentials may be accepted.
    fn auth_rejected(&mut self, by: u16) -> Outcome {
        self.auth_rejections = self.auth_rejections.saturating_add(1);
        self.last_auth_rejection = Some(by);
        if self.auth_rejections > self.max_auth_retries { Outcome::Permanent } else { Outcome::TRANSIENT }
    }
}

/// Returns the token of the reservation that the server made when it rejected the client, by a response or by a close.
pub(super) fn reservation_token(cause: &ConnectionError) -> Option<ReservationToken> {
    let reservation = match cause {
        ConnectionError::Rejected(rejected) => stagger_http::hint::reservation(rejected.headers()),
        ConnectionError::Closed { reason, .. } => ReconnectAdvice::reservation(reason),
        _ => None,
    };
    reservation.map(|reservation| reservation.token)
}

/// Classifies an I/O error. Unlike a single call, a long-lived client may outlast errors that classify as permanent,
/// such as an unknown host name. Only an address that cannot be connected to at all is permanent.
fn io_outcome(error: &io::Error) -> Outcome {
    match classify::io(error) {
        Outcome::Permanent if error.kind() != io::ErrorKind::InvalidInput => Outcome::TRANSIENT,
        outcome => outcome,
    }
}
