//! Permits of attempts that run at the same time, as hedged copies do.

use stagger_core::guard::Permits;
use stagger_core::{Guards, NestedRetries, Outcome};

use crate::laws::support::{RecordingBreaker, RecordingBudget, at, secs};

#[test]
fn attempts_at_the_same_time_are_charged_and_settled_one_by_one() {
    let (budget, breaker) = (RecordingBudget::default(), RecordingBreaker::default());
    let guards = Guards::none().budget(&budget).breaker(&breaker);
    let now = || at(secs(1));
    let _first = guards.first_of_several(now);
    // The driver has asked the breaker about the first attempt.
    assert_eq!((budget.outstanding(), breaker.outstanding()), (1, 0));
    let copy = guards.another_of_several(now).expect("neither guard rejects it");
    assert_eq!((budget.outstanding(), breaker.outstanding()), (2, 1));
    guards.settle(copy, &Outcome::TRANSIENT, now);
    assert_eq!((budget.outstanding(), breaker.outstanding()), (1, 0));
    assert_eq!(budget.events(), ["on_first_attempt", "try_acquire Transient", "record 2 Ailing"]);
    assert_eq!(breaker.records(), [(1, Outcome::TRANSIENT)]);
}

#[test]
fn a_copy_that_a_guard_rejects_holds_no_permit() {
    let (budget, breaker) = (RecordingBudget::default(), RecordingBreaker::default());
    let guards = Guards::none().budget(&budget).breaker(&breaker);
    breaker.set_open(true);
    assert_eq!(guards.another_of_several(|| at(secs(1))), None);
    assert_eq!(budget.events(), ["try_acquire Transient", "release 1"]);
    budget.assert_balanced();
    breaker.set_open(false);
    budget.set_rejects(true);
    assert_eq!(guards.another_of_several(|| at(secs(1))), None);
    assert_eq!(breaker.outstanding(), 0);
}

/// The outer layer has counted the attempt that contains it.
#[test]
fn the_first_of_several_is_not_counted_twice_under_a_shared_budget() {
    let budget = RecordingBudget::default();
    let guards = Guards::none().budget(&budget).nested(NestedRetries::ShareBudget);
    let first = guards.first_of_several(|| at(secs(1)));
    assert_eq!(first, Permits::NONE);
    guards.settle(first, &Outcome::TRANSIENT, || at(secs(1)));
    assert_eq!(budget.events(), Vec::<String>::new());
}
