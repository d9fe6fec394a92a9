//! The wait before the first attempt.

use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::machine::{RetryMachine, RetryState};
use stagger_core::{Guard, Guards, Instant, NestedRetries, Outcome, Policy, Seed, StopReason};

use crate::laws::support::{Call, RecordingGuard, at, ms, secs};

#[test]
fn the_spread_matches_the_policy_and_precedes_the_schedule() {
    let policy = Policy::exponential(ms(100), secs(10)).spread(secs(30)).max_attempts(5).build().unwrap();
    for seed in 0..50 {
        let trace = Call::new(&policy).seed(seed).failing();
        assert_eq!(trace.spread, policy.first_spread(Seed::new(seed)));
        assert!(trace.waits.iter().copied().eq(policy.delays(Seed::new(seed))));
    }
}

#[test]
fn the_spread_counts_toward_max_elapsed() {
    let policy = Policy::constant(secs(1)).spread(secs(10)).max_elapsed(secs(10)).unlimited_attempts();
    let policy = policy.build().unwrap();
    for seed in 0..50 {
        let trace = Call::new(&policy).seed(seed).failing();
        let waited: Duration = trace.waits.iter().sum();
        assert_eq!(trace.last_start, trace.spread + waited);
        assert!(trace.last_start <= secs(10), "{trace:?}");
        assert_eq!(trace.stop, Some(StopReason::Elapsed));
    }
}

#[test]
fn without_a_spread_the_first_attempt_does_not_wait() {
    assert_eq!(Call::new(&Policy::DEFAULT).failing().spread, Duration::ZERO);
    assert_eq!(Policy::DEFAULT.first_spread(Seed::new(1)), Duration::ZERO);
}

/// Drivers use it to skip reading the clock.
#[test]
fn starts_immediately_without_spread_and_max_elapsed() {
    let plain = Policy::constant(secs(1));
    for (builder, want) in [
        (plain, true),
        (plain.max_attempts(1), true),
        (plain.spread(secs(1)), false),
        (plain.max_elapsed(secs(9)), false),
        (plain.spread(secs(1)).max_elapsed(secs(9)), false),
    ] {
        assert_eq!(builder.build().unwrap().starts_immediately(), want);
    }
}

/// The draw is made within the remaining time, so that clients with one deadline do not all start at it.
#[test]
fn the_spread_is_drawn_within_the_deadline() {
    let policy = Policy::constant(secs(1)).spread(secs(100)).build().unwrap();
    let spread = |seed, deadline: Instant| {
        let mut state = RetryState::new();
        RetryMachine::new(&policy, &mut state, Seed::new(seed)).deadline(Some(deadline)).spread(|| at(secs(5)))
    };
    let waits: Vec<_> = (0..500).map(|seed| spread(seed, at(secs(15)))).collect();
    assert!(waits.iter().all(|&wait| wait <= secs(10)));
    assert!(waits.iter().any(|&wait| wait > ms(9_800)) && waits.iter().any(|&wait| wait < ms(200)));
    assert_eq!(spread(1, at(secs(5))), Duration::ZERO);
    assert_eq!(spread(1, at(secs(1))), Duration::ZERO);
    assert_eq!(spread(1, at(secs(500))), policy.first_spread(Seed::new(1)));
}

#[test]
fn max_elapsed_starts_with_the_spread() {
    let policy = Policy::constant(secs(1)).spread(secs(10)).max_elapsed(secs(60)).build().unwrap();
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let _ = retry.spread(|| at(secs(5)));
    let _ = retry.begin(Permits::NONE, || at(secs(9)), &Guards::none()).unwrap();
    assert_eq!(state.start(), Some(at(secs(5))));
}

// Permits of attempts that run at the same time, as hedged copies do.

#[test]
fn attempts_at_the_same_time_are_charged_and_settled_one_by_one() {
    let (budget, breaker) = (RecordingGuard::budget(), RecordingGuard::breaker());
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    let guards = Guards::of(&list);
    let now = || at(secs(1));
    let _first = guards.first_of_several(now);
    // The driver has asked the breaker about the first attempt.
    assert_eq!((budget.outstanding(), breaker.outstanding()), (1, 0));
    let copy = guards.another_of_several(now).expect("neither guard rejects it");
    assert_eq!((budget.outstanding(), breaker.outstanding()), (2, 1));
    guards.settle(copy, &Outcome::TRANSIENT, now);
    assert_eq!((budget.outstanding(), breaker.outstanding()), (1, 0));
    assert_eq!(budget.events(), ["ask first", "reserve Transient", "ask retry", "made 2 Ailing"]);
    assert_eq!(breaker.records(), [(1, Outcome::TRANSIENT)]);
}

#[test]
fn a_copy_that_a_guard_rejects_holds_no_permit() {
    let (budget, breaker) = (RecordingGuard::budget(), RecordingGuard::breaker());
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    let guards = Guards::of(&list);
    breaker.set_open(true);
    assert_eq!(guards.another_of_several(|| at(secs(1))), Err(StopReason::BREAKER));
    assert_eq!(budget.events(), ["reserve Transient", "never made 1"]);
    budget.assert_balanced();
    breaker.set_open(false);
    budget.set_rejects(true);
    assert_eq!(guards.another_of_several(|| at(secs(1))), Err(StopReason::BUDGET));
    assert_eq!(breaker.outstanding(), 0);
    budget.set_rejects(false);
    breaker.set_open(false);
    breaker.set_waits(1);
    assert_eq!(guards.another_of_several(|| at(secs(1))), Err(StopReason::BREAKER), "a copy does not wait");
    budget.assert_balanced();
    breaker.assert_balanced();
}

/// The outer layer has counted the attempt that contains it.
#[test]
fn the_first_of_several_is_not_counted_twice_under_a_shared_budget() {
    let budget = RecordingGuard::budget();
    let list: [&dyn Guard; 1] = [&budget];
    let guards = Guards::of(&list).nested(NestedRetries::ShareBudget);
    let first = guards.first_of_several(|| at(secs(1)));
    assert_eq!(first, Permits::NONE);
    guards.settle(first, &Outcome::TRANSIENT, || at(secs(1)));
    assert_eq!(budget.events(), Vec::<String>::new());
}
