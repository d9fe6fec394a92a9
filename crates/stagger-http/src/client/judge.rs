use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use stagger::{FailureKind, Outcome, classify};

use super::progress::Head;
use super::settings::Settings;
use crate::grpc::{self, Codes};
use crate::status::{self, Keyed};
use crate::{IDEMPOTENCY_KEY, Repeat, Sent, advice};

/// What is known of a request that bears on whether it is sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    repeat: Repeat,
    keyed: Keyed,
    speaks_grpc: bool,
    codes: Option<Codes>,
}

/// Whether the body of a request can be sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// All of it.
    Whole,
    /// It was longer than what is kept, or a stream, or it failed.
    Lost,
}

impl Judge {
    pub(super) fn new<P: Head>(head: &P, body: Kept, settings: &Settings<P>) -> Self {
        let repeat = match Repeat::of(head.method(), head.headers()) {
            _ if body == Kept::Lost => Repeat::BodyLost,
            Repeat::IfUnsent if settings.is_told(head) => Repeat::Told,
            repeat => repeat,
        };
        let keyed = if head.headers().contains_key(IDEMPOTENCY_KEY) { Keyed::Yes } else { Keyed::No };
        Self { repeat, keyed, speaks_grpc: grpc::is_grpc(head.headers()), codes: settings.codes }
    }

    /// What an answer means that is not a success.
    pub(super) fn answer(self, status: StatusCode, headers: &HeaderMap) -> Outcome {
        let rule = |code| self.codes.map_or_else(|| classify::grpc(code), |codes| codes.outcome(code));
        let outcome = by_grpc(headers, rule).unwrap_or_else(|| {
            let hint = advice::hint(headers, SystemTime::now);
            if !self.speaks_grpc {
                return status::outcome(status, self.keyed, hint);
            }
            // A proxy's answer to what it does not understand.
            match rule(grpc::code_of(status)) {
                Outcome::Failed { kind, .. } => Outcome::Failed { kind, hint },
                outcome => outcome,
            }
        });
        self.bounded(outcome, Sent::Perhaps)
    }

    /// What a failure means for this request.
    pub(super) const fn bounded(self, outcome: Outcome, sent: Sent) -> Outcome {
        match outcome {
            Outcome::Failed { kind, .. } if !self.repeat.allows(sent) => Outcome::UnsafeToRetry(kind),
            Outcome::NotProcessed if !self.repeat.allows(Sent::Unprocessed) => {
                Outcome::UnsafeToRetry(FailureKind::Transient)
            }
            outcome => outcome,
        }
    }

    /// Whether it may be sent again, and can.
    pub(super) const fn repeat(self) -> Repeat {
        self.repeat
    }
}

/// Whether an answer is a success, whatever the request was.
pub(crate) fn is_success(status: StatusCode, headers: &HeaderMap) -> bool {
    status.as_u16() < 400 && by_grpc(headers, classify::grpc).is_none_or(|outcome| outcome == Outcome::Success)
}

fn by_grpc(headers: &HeaderMap, rule: impl FnOnce(u32) -> Outcome) -> Option<Outcome> {
    grpc::outcome_by(headers, rule).filter(|_| grpc::is_grpc(headers))
}
