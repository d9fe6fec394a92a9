use core::time::Duration;

use crate::{FailureKind, Outcome, ServerHint};

/// What a round came to as a whole, for policy and guards.
pub(super) fn whole(outcomes: impl Iterator<Item = Outcome> + Clone) -> Outcome {
    if outcomes.clone().all(|outcome| outcome == Outcome::NotProcessed) {
        return Outcome::NotProcessed;
    }
    outcomes.fold(Outcome::Success, worse)
}

/// The worse of two outcomes, with the longer hint.
fn worse(one: Outcome, other: Outcome) -> Outcome {
    let worst = if rank(&other) > rank(&one) { other } else { one };
    match worst {
        Outcome::Failed { kind, .. } => {
            let hint = if asked(&other) > asked(&one) { hint(&other) } else { hint(&one) };
            Outcome::Failed { kind, hint }
        }
        // Others were processed, so it is no case for an immediate repeat.
        Outcome::NotProcessed => Outcome::Failed { kind: FailureKind::Transient, hint: hint(&one) },
        _ => worst,
    }
}

const fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Success => 0,
        Outcome::Cancelled => 1,
        Outcome::Permanent | Outcome::UnsafeToRetry(_) => 2,
        Outcome::Failed { kind: FailureKind::LocalExhaustion, .. } => 3,
        Outcome::Failed { kind: FailureKind::Throttled, .. } => 5,
        _ => 4,
    }
}

/// What the round as a whole is asked to wait for: an item that shall never come again leaves it, and asks the others
/// for nothing.
const fn hint(outcome: &Outcome) -> Option<ServerHint> {
    match outcome {
        Outcome::Failed { hint: hint @ Some(ServerHint::AtLeast(_) | ServerHint::Reserved(_)), .. } => *hint,
        _ => None,
    }
}

fn asked(outcome: &Outcome) -> Option<Duration> {
    hint(outcome).and_then(|hint| match hint {
        ServerHint::AtLeast(length) | ServerHint::Reserved(length) => Some(length),
        _ => None,
    })
}
