use std::time::SystemTime;

use http::{Response, request};
use stagger::Outcome;

use super::replay::ReplayBody;
use super::settings::Settings;
use crate::status::{self, Keyed};
use crate::{IDEMPOTENCY_KEY, Repeat, Sent, advice, grpc};

/// What is known of a request that bears on whether it is sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    repeat: Repeat,
    keyed: Keyed,
}

impl Judge {
    pub(super) fn new(parts: &request::Parts, settings: &Settings) -> Self {
        let mut repeat = Repeat::of(&parts.method, &parts.headers);
        if repeat == Repeat::IfUnsent && settings.told.as_ref().is_some_and(|told| told(parts)) {
            repeat = Repeat::Told;
        }
        let keyed = if parts.headers.contains_key(IDEMPOTENCY_KEY) { Keyed::Yes } else { Keyed::No };
        Self { repeat, keyed }
    }

    /// What an answer means.
    pub(super) fn answer<R, B>(self, answer: &Response<R>, body: &ReplayBody<B>) -> Outcome {
        let headers = answer.headers();
        let outcome = match grpc::outcome(headers) {
            Some(outcome) if grpc::is_grpc(headers) => outcome,
            _ => {
                let hint = || advice::hint(headers, SystemTime::now);
                // A success needs no headers to be read.
                let hint = if answer.status().as_u16() < 400 { None } else { hint() };
                status::outcome(answer.status(), self.keyed, hint)
            }
        };
        self.bounded(outcome, Sent::Perhaps, body)
    }

    /// What a failure means for this request.
    pub(super) fn bounded<B>(self, outcome: Outcome, sent: Sent, body: &ReplayBody<B>) -> Outcome {
        match outcome {
            Outcome::Failed { kind, .. } if !self.repeat(body).allows(sent) => Outcome::Unrepeatable(kind),
            Outcome::Unprocessed if !body.is_whole() => Outcome::Unrepeatable(stagger::Kind::Transient),
            outcome => outcome,
        }
    }

    /// Whether it may be sent again, and can.
    pub(super) fn repeat<B>(self, body: &ReplayBody<B>) -> Repeat {
        if body.is_whole() { self.repeat } else { Repeat::BodyLost }
    }
}
