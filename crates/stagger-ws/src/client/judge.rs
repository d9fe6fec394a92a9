use std::io;
use std::time::SystemTime;

use stagger::{FailureKind, Outcome, Policy, Seed, ServerHint, classify, machine::Generation, schedule::draw};
use stagger_http::Idempotency;
use stagger_http::status::outcome;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};

use super::Cause;
use crate::codes::{Codes, OnClose};

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
    pub(super) codes: Codes,
    pub(super) forbidden_retries: u32,
    refusals: u32,
    refused: Option<u16>,
}

impl Judge {
    pub(super) const fn new(codes: Codes) -> Self {
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
    pub(super) fn failed(&mut self, cause: &Cause) -> Verdict {
        match cause {
            Cause::Refused(refusal) => match refusal.status().as_u16() {
                status @ (401 | 403) => self.refuse(status),
                // A success that is no upgrade, or a redirection that is not followed: the same the next time.
                ..=399 => Outcome::Permanent.into(),
                _ => {
                    let hint = stagger_http::hint::server_hint(refusal.headers(), SystemTime::now);
                    outcome(refusal.status(), Idempotency::ByMethod, hint).into()
                }
            },
            Cause::Protocol(ProtocolError::SecWebSocketSubProtocolError(_)) | Cause::Tls(_) | Cause::Unusable(_) => {
                Outcome::Permanent.into()
            }
            // Only about the request: what came of the network is below.
            Cause::Protocol(
                ProtocolError::InvalidHeader(_) | ProtocolError::WrongHttpMethod | ProtocolError::WrongHttpVersion,
            ) => Outcome::Permanent.into(),
            Cause::Io(error) => io_outcome(error).into(),
            _ => Outcome::TRANSIENT.into(),
        }
    }

    /// A connection that had been opened has ended. `number` is its generation's, for what is drawn.
    pub(super) fn ended(&mut self, cause: &Cause, generation: Generation, policy: &Policy, seed: Seed) -> Verdict {
        let bits = seed.for_call(generation.get()).get();
        let meaning = match cause {
            Cause::Closed { code, reason } => self.codes.meaning(*code, reason),
            // What was asked of the server makes it send the same again.
            Cause::TooLong(CapacityError::MessageTooLong { .. }) => OnClose::Fatal,
            // Whoever is not let in was never served, and a server that lost its history sends everyone away.
            Cause::NotResumed
            | Cause::ConnectTimeout { .. }
            | Cause::Protocol(_)
            | Cause::TooLong(_)
            | Cause::NotUtf8 => OnClose::Broken,
            _ => OnClose::Reconnect,
        };
        if meaning != OnClose::Refresh {
            self.refusals = 0;
        }
        match meaning {
            OnClose::End | OnClose::Fatal => Outcome::Permanent.into(),
            OnClose::Refresh => self.refuse(cause.code().unwrap_or_default()),
            OnClose::Reconnect => match cause {
                Cause::Io(error) => io_outcome(error).into(),
                _ => Outcome::TRANSIENT.into(),
            },
            // The spread first, for it hits everyone at once; the backoff, which goes on, comes on top.
            OnClose::Broken => {
                let spread = draw(core::time::Duration::ZERO, policy.spread(), bits);
                let hint = (!spread.is_zero()).then_some(ServerHint::AtLeast(spread));
                Verdict { outcome: Outcome::Failed { kind: FailureKind::Transient, hint }, trust: Trust::None }
            }
            // Each client draws its own point, and keeps to it.
            OnClose::Within { from, to } => {
                let hint = ServerHint::Reserved(draw(from, to.max(from), bits));
                Outcome::Failed { kind: FailureKind::Throttled, hint: Some(hint) }.into()
            }
        }
    }

    /// Whether this is how a connection ends that is not wanted again.
    pub(super) fn is_the_end(&self, cause: &Cause) -> bool {
        match cause {
            Cause::Closed { code, reason } => self.codes.meaning(*code, reason) == OnClose::End,
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
