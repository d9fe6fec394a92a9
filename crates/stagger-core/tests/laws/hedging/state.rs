//! The hedge state: when the next copy is due.

use core::time::Duration;

use stagger_core::hedge::{Hedge, HedgeState};
use stagger_core::{FailureKind, Outcome, ServerHint};

use crate::laws::support::{at, ms, secs};

/// `hedgingPolicy` with 4 attempts and a delay of 500 ms, and a server that does not respond.
#[test]
fn gr_13_copies_start_one_delay_apart() {
    let hedge = Hedge::after(ms(500)).with_max_copies(3);
    let mut state = HedgeState::new(&hedge, ms(500), at(secs(1)));
    let mut in_flight = Vec::new();
    for now in [1, 501, 1001, 1501, 2001].map(|after| at(secs(1) + ms(after))) {
        if state.due().is_some_and(|due| due <= now) {
            state.launched(ms(500), now);
        }
        in_flight.push(state.count());
    }
    assert_eq!(in_flight, [1, 2, 3, 4, 4]);
    assert_eq!(state.due(), None);
}

#[test]
fn with_zero_copies_none_is_ever_due() {
    let state = HedgeState::new(&Hedge::after(Duration::ZERO).with_max_copies(0), Duration::ZERO, at(secs(1)));
    assert_eq!((state.due(), state.count()), (None, 1));
}

#[test]
fn max_copies_is_clamped_to_ten() {
    assert_eq!(Hedge::after(ms(1)).with_max_copies(11).max_copies(), 10);
    assert_eq!(Hedge::after(ms(1)).with_max_copies(10).max_copies(), 10);
}

#[test]
fn a_retryable_failure_makes_the_next_copy_due() {
    let failed = |kind, hint| Outcome::Failed { kind, hint };
    for (outcome, want) in [
        (Outcome::TRANSIENT, Some(at(secs(5)))),
        (Outcome::NotProcessed, Some(at(secs(5)))),
        (failed(FailureKind::Throttled, None), Some(at(secs(5)))),
        (failed(FailureKind::Throttled, Some(ServerHint::AtLeast(secs(2)))), Some(at(secs(7)))),
        (failed(FailureKind::Transient, Some(ServerHint::Reserved(secs(3)))), Some(at(secs(8)))),
        (failed(FailureKind::Throttled, Some(ServerHint::DoNotRetry)), None),
        (failed(FailureKind::LocalExhaustion, None), None),
        (Outcome::Permanent, None),
        (Outcome::Cancelled, None),
    ] {
        let mut state = HedgeState::new(&Hedge::after(secs(60)), secs(60), at(secs(1)));
        state.failed(&outcome, at(secs(5)));
        assert_eq!(state.due(), want, "{outcome:?}");
    }
}

#[test]
fn a_copy_rejected_by_the_budget_is_the_last() {
    let mut state = HedgeState::new(&Hedge::after(ms(1)).with_max_copies(5), ms(1), at(secs(1)));
    state.rejected();
    assert_eq!(state.due(), None);
    state.failed(&Outcome::TRANSIENT, at(secs(2)));
    assert_eq!(state.due(), None, "a failure does not make another copy due");
}
