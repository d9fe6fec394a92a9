//! Steps 5 and 9: limits of attempts and of time.

use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{Guard, Guards, Instant, Jitter, Outcome, Policy, Seed, StopReason};

use crate::laws::support::{Call, RecordingGuard, at, ms, secs};

#[test]
fn retry_state_is_24_bytes_of_plain_data() {
    fn is_plain<T: Copy + Send + Sync + 'static>() {}
    is_plain::<RetryState>();
    assert_eq!(size_of::<RetryState>(), 24);
    assert_eq!(RetryState::default(), RetryState::new());
}

#[test]
fn max_attempts_includes_the_first_attempt() {
    for most in [1, 2, 5, 100] {
        let policy = Policy::zero().max_attempts(most).build().unwrap();
        let trace = Call::new(&policy).failing();
        assert_eq!((trace.attempts, trace.runs, trace.stop), (most, most, Some(StopReason::Attempts)));
    }
}

#[test]
fn unlimited_attempts_never_stop_a_call() {
    let policy = Policy::zero().unlimited_attempts().build().unwrap();
    let trace = Call::new(&policy).run(core::iter::repeat_n(Outcome::TRANSIENT, 10_000));
    assert_eq!((trace.attempts, trace.stop), (10_001, None));
}

#[test]
fn is_last_attempt_is_true_during_the_last_attempt() {
    let policy = Policy::zero().max_attempts(2).build().unwrap();
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    assert_eq!(retry.max_attempts().unwrap().get(), 2);
    let seen = [0, 1, 2].map(|attempt| {
        assert_eq!(retry.attempt(), attempt);
        let last = retry.is_last_attempt();
        let permit = retry.begin(Permits::NONE, || Instant::ZERO, &Guards::none()).unwrap();
        let _ = retry.decide(Outcome::TRANSIENT, permit, || Instant::ZERO, &Guards::none());
        last
    });
    assert_eq!(seen, [false, false, true]);
    assert_eq!(state.attempt(), 3);
}

/// The limit is inclusive.
#[test]
fn a_retry_may_start_at_max_elapsed_and_not_after() {
    let policy = Policy::constant(secs(1)).jitter(Jitter::None).unlimited_attempts();
    let nano = Duration::from_nanos(1);
    for (limit, took, want) in [
        (secs(3), Duration::ZERO, 3),
        (secs(3) - nano, Duration::ZERO, 2),
        (secs(4), secs(1), 2),
        (secs(4) - nano, secs(1), 1),
        (secs(1), Duration::ZERO, 1),
        (secs(1), nano, 0),
    ] {
        let policy = policy.max_elapsed(limit).build().unwrap();
        let trace = Call::new(&policy).took(took).failing();
        assert_eq!((trace.waits.len(), trace.stop), (want, Some(StopReason::Elapsed)), "{limit:?}, {took:?}");
    }
}

#[test]
fn no_attempt_starts_at_or_after_the_deadline() {
    let policy = Policy::constant(secs(1)).jitter(Jitter::None).unlimited_attempts().build().unwrap();
    let nano = Duration::from_nanos(1);
    for (left, want) in [(secs(3), 3_u32), (secs(3) + nano, 4), (secs(1), 1), (nano, 1), (Duration::ZERO, 0)] {
        let trace = Call::new(&policy).deadline(Call::START.saturating_add(left)).failing();
        assert_eq!(
            (trace.attempts, trace.waits.len(), trace.stop),
            (want, want.saturating_sub(1) as usize, Some(StopReason::Deadline))
        );
    }
}

/// The timer fires at the deadline or later, after the retry was granted before it.
#[test]
fn a_timer_later_than_the_deadline_stops_the_retry_and_releases_its_permits() {
    let policy = Policy::constant(secs(1)).build().unwrap();
    let just_before = secs(3) - Duration::from_nanos(1);
    for (woken_at, is_open, want) in [
        (just_before, false, None),
        (just_before, true, Some(StopReason::BREAKER)),
        (secs(3), false, Some(StopReason::Deadline)),
        // The deadline is asked first: a breaker that admitted a probe would wait for its result.
        (secs(3), true, Some(StopReason::Deadline)),
    ] {
        let (budget, breaker) = (RecordingGuard::budget(), RecordingGuard::breaker());
        let list: [&dyn Guard; 2] = [&breaker, &budget];
        let guards = Guards::of(&list);
        let mut state = RetryState::new();
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1)).deadline(Some(at(secs(3))));
        let permit = retry.begin(Permits::NONE, || at(secs(0)), &guards).unwrap();
        let Decision::Retry { permit, .. } = retry.decide(Outcome::TRANSIENT, permit, || at(ms(100)), &guards) else {
            panic!("the retry is before the deadline")
        };
        breaker.set_open(is_open);
        budget.events();
        let begun = retry.begin(permit, || at(woken_at), &guards);
        assert_eq!(begun.as_ref().err().copied(), want, "{woken_at:?}, open: {is_open}");
        let event = if want.is_some() { "never made 2" } else { "ask retry" };
        assert_eq!(budget.events(), [event], "the permit is given back at once");
        if let Ok(permit) = begun {
            guards.release(permit, || at(woken_at));
        }
        budget.assert_balanced();
        breaker.assert_balanced();
    }
}

/// A granted attempt is made, however late the timer fires: `max_elapsed` limits when a retry is decided on.
#[test]
fn a_late_timer_does_not_stop_a_granted_attempt() {
    let policy = Policy::constant(secs(1)).max_elapsed(secs(2)).build().unwrap();
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let guards = Guards::none();
    let permit = retry.begin(Permits::NONE, || at(secs(0)), &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::TRANSIENT, permit, || at(ms(100)), &guards) else {
        panic!("the retry is within the limit")
    };
    let permit = retry.begin(permit, || at(secs(50)), &guards).unwrap();
    assert_eq!(retry.attempt(), 2);
    assert_eq!(retry.decide(Outcome::Success, permit, || at(secs(50)), &guards), Decision::Done);
}

#[test]
fn elapsed_is_tracked_only_with_a_limit_or_a_given_start() {
    let guards = Guards::none();
    let plain = Policy::zero().build().unwrap();
    let limited = plain.to_builder().max_elapsed(secs(9)).build().unwrap();
    for (policy, state, want) in [
        (&plain, RetryState::new(), None),
        (&plain, RetryState::started(at(secs(2))), Some(secs(5))),
        (&limited, RetryState::new(), Some(secs(4))),
        (&limited, RetryState::started(at(secs(2))), Some(secs(5))),
    ] {
        let mut state = state;
        let mut retry = RetryMachine::new(policy, &mut state, Seed::new(1));
        let _ = retry.begin(Permits::NONE, || at(secs(3)), &guards).unwrap();
        assert_eq!(retry.elapsed(at(secs(7))), want);
        assert_eq!(state.start(), want.map(|elapsed| at(secs(7) - elapsed)));
    }
}

#[test]
fn a_clock_that_goes_back_counts_as_zero_elapsed() {
    let policy = Policy::zero().max_elapsed(secs(1)).build().unwrap();
    let mut state = RetryState::started(at(secs(50)));
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, || at(secs(3)), &Guards::none()).unwrap();
    assert_eq!(retry.elapsed(at(secs(3))), Some(Duration::ZERO));
    let got = retry.decide(Outcome::TRANSIENT, permit, || at(secs(3)), &Guards::none());
    assert!(matches!(got, Decision::Retry { .. }), "{got:?}");
}
