use std::io;
use std::time::SystemTime;

use stagger::{Generation, Hint, Kind, Outcome, Policy, Seed, classify, draw};
use stagger_http::status::{Keyed, outcome};
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};

use super::ConnectionError;
use crate::codes::{CloseAction, CloseCodes};

/// What a cause means for the connection that comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Classification {
    pub(super) outcome: Outcome,
    pub(super) health: Health,
}

/// Whether the connection that ended may count as healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// If it lived long enough.
    ByUptime,
    /// However long it lived, it does not.
    Unhealthy,
}

impl From<Outcome> for Classification {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, health: Health::ByUptime }
    }
}

/// Judges causes, and remembers how often credentials were refused.
#[derive(Clone, Debug)]
pub(super) struct Classifier {
    pub(super) codes: CloseCodes,
    pub(super) max_auth_retries: u32,
    auth_rejections: u32,
    last_auth_rejection: Option<u16>,
}

impl Classifier {
    pub(super) const fn new(codes: CloseCodes) -> Self {
        Self { codes, max_auth_retries: 1, auth_rejections: 0, last_auth_rejection: None }
    }

    /// As small as it can be: every client has one.
    pub(super) fn shrunk(mut self) -> Self {
        self.codes.shrink();
        self
    }

    /// How the credentials were refused last, if nothing has been opened since.
    pub(super) const fn last_auth_rejection(&self) -> Option<u16> {
        self.last_auth_rejection
    }

    /// A connection was opened with what was asked for.
    pub(super) fn opened(&mut self) {
        self.last_auth_rejection = None;
    }

    /// It begins anew, by the user's wish.
    pub(super) fn reset(&mut self) {
        (self.auth_rejections, self.last_auth_rejection) = (0, None);
    }

    /// An attempt to connect has failed.
    pub(super) fn classify_attempt(&mut self, cause: &ConnectionError) -> Classification {
        match cause {
            ConnectionError::Rejected(rejected) => match rejected.status().as_u16() {
                status @ (401 | 403) => self.auth_rejected(status),
                // A success that is no upgrade, or a redirection that is not followed: the same the next time.
                ..=399 => Outcome::Permanent.into(),
                _ => {
                    let hint = stagger_http::advice::hint(rejected.headers(), SystemTime::now);
                    outcome(rejected.status(), Keyed::No, hint).into()
                }
            },
            ConnectionError::Protocol(ProtocolError::SecWebSocketSubProtocolError(_))
            | ConnectionError::Tls(_)
            | ConnectionError::InvalidRequest(_) => Outcome::Permanent.into(),
            // Only about the request: what came of the network is below.
            ConnectionError::Protocol(
                ProtocolError::InvalidHeader(_) | ProtocolError::WrongHttpMethod | ProtocolError::WrongHttpVersion,
            ) => Outcome::Permanent.into(),
            ConnectionError::Io(error) => io_outcome(error).into(),
            _ => Outcome::TRANSIENT.into(),
        }
    }

    /// A connection that had been opened has ended. `number` is its generation's, for what is drawn.
    pub(super) fn classify_loss(
        &mut self,
        cause: &ConnectionError,
        generation: Generation,
        policy: &Policy,
        seed: Seed,
    ) -> Classification {
        let bits = seed.for_call(generation.get()).get();
        let action = match cause {
            ConnectionError::Closed { code, reason } => self.codes.action(*code, reason),
            // What was asked of the server makes it send the same again.
            ConnectionError::TooLong(CapacityError::MessageTooLong { .. }) => CloseAction::Fatal,
            // Whoever is not let in was never served, and a server that lost its history sends everyone away.
            ConnectionError::ResumeRejected
            | ConnectionError::ConnectTimeout { .. }
            | ConnectionError::Protocol(_)
            | ConnectionError::TooLong(_)
            | ConnectionError::InvalidUtf8 => CloseAction::ReconnectUnhealthy,
            _ => CloseAction::Reconnect,
        };
        if action != CloseAction::Reauthenticate {
            self.auth_rejections = 0;
        }
        match action {
            CloseAction::End | CloseAction::Fatal => Outcome::Permanent.into(),
            CloseAction::Reauthenticate => self.auth_rejected(cause.close_code().unwrap_or_default()),
            CloseAction::Reconnect => match cause {
                ConnectionError::Io(error) => io_outcome(error).into(),
                _ => Outcome::TRANSIENT.into(),
            },
            // The spread first, for it hits everyone at once; the backoff, which goes on, comes on top.
            CloseAction::ReconnectUnhealthy => {
                let spread = draw(core::time::Duration::ZERO, policy.spread(), bits);
                let hint = (!spread.is_zero()).then_some(Hint::Floor(spread));
                Classification { outcome: Outcome::Failed { kind: Kind::Transient, hint }, health: Health::Unhealthy }
            }
            // Each client draws its own point, and keeps to it.
            CloseAction::ReconnectWithin { from, to } => {
                let hint = Hint::Slot(draw(from, to.max(from), bits));
                Outcome::Failed { kind: Kind::Throttled, hint: Some(hint) }.into()
            }
        }
    }

    /// Whether this is how a connection ends that is not wanted again.
    pub(super) fn is_normal_end(&self, cause: &ConnectionError) -> bool {
        match cause {
            ConnectionError::Closed { code, reason } => self.codes.action(*code, reason) == CloseAction::End,
            _ => false,
        }
    }

    /// The credentials were last_auth_rejection: fresh ones may help, so often.
    fn auth_rejected(&mut self, by: u16) -> Classification {
        self.auth_rejections = self.auth_rejections.saturating_add(1);
        self.last_auth_rejection = Some(by);
        if self.auth_rejections > self.max_auth_retries { Outcome::Permanent } else { Outcome::TRANSIENT }.into()
    }
}

/// A connection that is kept up outlives what a call would not wait for: a name that is not known may be known again.
/// Only what cannot be connected to at all is permanent.
fn io_outcome(error: &io::Error) -> Outcome {
    match classify::io(error) {
        Outcome::Permanent if error.kind() != io::ErrorKind::InvalidInput => Outcome::TRANSIENT,
        outcome => outcome,
    }
}
