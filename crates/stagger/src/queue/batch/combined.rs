use core::time::Duration;

use stagger_core::{FailureKind, Outcome, ServerHint};

/// Combines the outcomes of the items into one outcome of the attempt, for policy and guards.
pub(super) fn combined_outcome(outcomes: impl Iterator<Item = Outcome> + Clone) -> Outcome {
    if outcomes.clone().all(|outcome| outcome == Outcome::NotProcessed) {
        return Outcome::NotProcessed;
    }
    outcomes.fold(Outcome::Success, worse)
}

/// Returns the worse of two outcomes, with the longer hint.
fn worse(one: Outcome, other: Outcome) -> Outcome {
    let worst = if rank(&other) > rank(&one) { other } else { one };
    match worst {
        Outcome::Failed { kind, .. } => {
            let hint = if !is_retried(&one) && !is_retried(&other) {
                Some(ServerHint::DoNotRetry)
            } else if asked(&other) > asked(&one) {
                hint(&other)
            } else {
                hint(&one)
            };
            Outcome::Failed { kind, hint }
        }
        // Other items were processed, so an immediate repeat is not appropriate.
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

/// Returns whether the item is sent again if the policy allows it.
const fn is_retried(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed { hint, .. } => !matches!(hint, Some(ServerHint::DoNotRetry)),
        Outcome::NotProcessed => true,
        _ => false,
    }
}

/// Returns the hint that applies to the whole attempt. An item that must not be retried leaves the batch, and its hint
/// does not affect the others.
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
