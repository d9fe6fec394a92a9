use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use stagger::{Kind, Outcome, classify};

use super::progress::Head;
use super::settings::Settings;
use crate::grpc::{self, Codes};
use crate::hint::server_hint;
use crate::status;
use crate::{Idempotency, RequestProgress};

/// What is known of a request that bears on whether it is sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    pub(super) idempotency: Idempotency,
    body: Kept,
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
        let idempotency = match Idempotency::from_request(head.method(), head.headers()) {
            Idempotency::OnlyIfUnsent if settings.is_told(head) => Idempotency::Declared,
            idempotency => idempotency,
        };
        Self { idempotency, body, speaks_grpc: grpc::is_grpc(head.headers()), codes: settings.codes }
    }

    /// What an answer means that is not a success.
    pub(super) fn answer(self, status: StatusCode, headers: &HeaderMap) -> Outcome {
        let rule = |code| self.codes.map_or_else(|| classify::grpc(code), |codes| codes.outcome(code));
        let outcome = by_grpc(headers, rule).unwrap_or_else(|| {
            let hint = server_hint(headers, SystemTime::now);
            if !self.speaks_grpc {
                return status::outcome(status, self.idempotency, hint);
            }
            // A proxy's answer to what it does not understand.
            match rule(grpc::code_from_http_status(status)) {
                Outcome::Failed { kind, .. } => Outcome::Failed { kind, hint },
                outcome => outcome,
            }
        });
        self.bounded(outcome, RequestProgress::MaybeProcessed)
    }

    /// What a failure means for this request.
    pub(super) const fn bounded(self, outcome: Outcome, progress: RequestProgress) -> Outcome {
        match outcome {
            Outcome::Failed { kind, .. } if !self.allows_retry(progress) => Outcome::Unrepeatable(kind),
            Outcome::Unprocessed if !self.allows_retry(RequestProgress::NotProcessed) => {
                Outcome::Unrepeatable(Kind::Transient)
            }
            outcome => outcome,
        }
    }

    /// Returns whether it may be sent again, and can.
    const fn allows_retry(self, progress: RequestProgress) -> bool {
        matches!(self.body, Kept::Whole) && self.idempotency.allows_retry(progress)
    }
}

/// Whether an answer is a success, whatever the request was.
pub(crate) fn is_success(status: StatusCode, headers: &HeaderMap) -> bool {
    status.as_u16() < 400 && by_grpc(headers, classify::grpc).is_none_or(|outcome| outcome == Outcome::Success)
}

fn by_grpc(headers: &HeaderMap, rule: impl FnOnce(u32) -> Outcome) -> Option<Outcome> {
    grpc::outcome_with(headers, rule).filter(|_| grpc::is_grpc(headers))
}
