use std::io;
use std::time::SystemTime;

use stagger::{Generation, Hint, Kind, Outcome, Policy, Seed, classify, draw};
use stagger_http::status::{Keyed, outcome};
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};

use super::ConnectionError;
use crate::codes::{CloseAction, CloseCodes};

/// What a cause means for the connection that comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    pub(super) trust: Trust,
}

/// Whether the connection that ended may count as healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// If it lived long enough.
    ByAge,
    /// However long it lived, it does not.
    None,
}

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, trust: Trust::ByAge }
    }
}

/// Judges causes, and remembers how often credentials were refused.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub(super) codes: CloseCodes,
    pub(super) forbidden_retries: u32,
    refusals: u32,
    refused: Option<u16>,
}

impl Judge {
    pub(super) const fn new(codes: CloseCodes) -> Self {
        Self { codes, forbidden_retries: 1, refusals: 0, refused: None }
    }

    /// As small as it can be: every client has one.
    pub(super) fn settled(mut self) -> Self {
        self.codes.shrink();
        self
    }

    /// How the credentials were refused last, if nothing has been opened since.
    pub(super) const fn refused(&self) -> Option<u16> {
        self.refused
    }

    /// A connection was opened with what was asked for.
    pub(super) fn opened(&mut self) {
        self.refused = None;
    }

    /// It begins anew, by the user's wish.
    pub(super) fn forgive(&mut self) {
        (self.refusals, self.refused) = (0, None);
    }

    /// An attempt to connect has failed.
    pub(super) fn failed(&mut self, cause: &ConnectionError) -> Verdict {
        match cause {
            ConnectionError::Rejected(refusal) => match refusal.status().as_u16() {
                status @ (401 | 403) => self.refuse(status),
                // A success that is no upgrade, or a redirection that is not followed: the same the next time.
                ..=399 => Outcome::Permanent.into(),
                _ => {
                    let hint = stagger_http::advice::hint(refusal.headers(), SystemTime::now);
                    outcome(refusal.status(), Keyed::No, hint).into()
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
    pub(super) fn ended(
        &mut self,
        cause: &ConnectionError,
        generation: Generation,
        policy: &Policy,
        seed: Seed,
    ) -> Verdict {
        let bits = seed.for_call(generation.get()).get();
        let meaning = match cause {
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
        if meaning != CloseAction::Reauthenticate {
            self.refusals = 0;
        }
        match meaning {
            CloseAction::End | CloseAction::Fatal => Outcome::Permanent.into(),
            CloseAction::Reauthenticate => self.refuse(cause.close_code().unwrap_or_default()),
            CloseAction::Reconnect => match cause {
                ConnectionError::Io(error) => io_outcome(error).into(),
                _ => Outcome::TRANSIENT.into(),
            },
            // The spread first, for it hits everyone at once; the backoff, which goes on, comes on top.
            CloseAction::ReconnectUnhealthy => {
                let spread = draw(core::time::Duration::ZERO, policy.spread(), bits);
                let hint = (!spread.is_zero()).then_some(Hint::Floor(spread));
                Verdict { outcome: Outcome::Failed { kind: Kind::Transient, hint }, trust: Trust::None }
            }
            // Each client draws its own point, and keeps to it.
            CloseAction::ReconnectWithin { from, to } => {
                let hint = Hint::Slot(draw(from, to.max(from), bits));
                Outcome::Failed { kind: Kind::Throttled, hint: Some(hint) }.into()
            }
        }
    }

    /// Whether this is how a connection ends that is not wanted again.
    pub(super) fn is_the_end(&self, cause: &ConnectionError) -> bool {
        match cause {
            ConnectionError::Closed { code, reason } => self.codes.action(*code, reason) == CloseAction::End,
            _ => false,
        }
    }

    /// The credentials were refused: fresh ones may help, so often.
    fn refuse(&mut self, by: u16) -> Verdict {
        self.refusals = self.refusals.saturating_add(1);
        self.refused = Some(by);
        if self.refusals > self.forbidden_retries { Outcome::Permanent } else { Outcome::TRANSIENT }.into()
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
