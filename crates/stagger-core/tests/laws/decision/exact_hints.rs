//! A hint that is followed exactly shortens three waits in a row; the next is as long as the policy draws it.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{
    DelaySource, FailureKind, Guards, HintMode, Instant, Jitter, NestedRetries, Outcome, Policy, Seed, ServerHint,
};

use crate::laws::support::{Call, any_policy, cases, length, ms, secs};

const NOW: Outcome = reserved(Duration::ZERO);

const fn reserved(asked: Duration) -> Outcome {
    Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::Reserved(asked)) }
}

const fn at_least(asked: Duration) -> Outcome {
    Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::AtLeast(asked)) }
}

/// Delays of 1, 2, 4, 8 s and so on.
fn doubling() -> Policy {
    Policy::exponential(secs(1), secs(1 << 20))
        .jitter(Jitter::None)
        .unlimited_attempts()
        .unlimited_hint()
        .build()
        .unwrap()
}

fn waits(policy: &Policy, outcomes: &[Outcome]) -> Vec<u64> {
    let trace = Call::new(policy).run(outcomes.iter().copied());
    trace.waits.iter().map(Duration::as_secs).collect()
}

#[test]
fn every_fourth_of_the_waits_that_a_server_shortens_is_as_long_as_the_policy_draws_it() {
    assert_eq!(waits(&doubling(), &[NOW; 9]), [0, 0, 0, 8, 0, 0, 0, 128, 0]);
    let trace = Call::new(&doubling()).run([NOW; 9]);
    assert_eq!(trace.sources, [DelaySource::Hint; 9]);
    let exact = doubling().to_builder().hint_mode(HintMode::Exact).build().unwrap();
    assert_eq!(waits(&exact, &[at_least(ms(1)); 5]), [0, 0, 0, 8, 0]);
}

#[test]
fn a_wait_that_no_exact_hint_shortened_restarts_the_count() {
    for (between, waited) in [
        (Outcome::TRANSIENT, 4),
        // As long as the policy's delay, and longer.
        (reserved(secs(4)), 4),
        (reserved(secs(9)), 9),
    ] {
        let outcomes = [NOW, NOW, between, NOW, NOW, NOW, NOW];
        assert_eq!(waits(&doubling(), &outcomes), [0, 0, waited, 0, 0, 0, 64], "{between:?}");
    }
    // Drawn by the policy from 0 to 4 s above the hint, though it may be shorter than 4 s.
    let waits = waits(&doubling(), &[NOW, NOW, at_least(Duration::ZERO), NOW, NOW, NOW, NOW]);
    assert_eq!(waits[3..], [0, 0, 0, 64]);
}

/// A server that has reserved a time is not served late by a client whose own delay is shorter.
#[test]
fn a_reservation_after_the_policys_own_delay_is_always_kept() {
    let policy = doubling().to_builder().cap(secs(8)).build().unwrap();
    assert_eq!(waits(&policy, &[reserved(secs(20)); 9]), [20; 9]);
    assert_eq!(waits(&policy, &[NOW, NOW, NOW, reserved(secs(20)), NOW]), [0, 0, 0, 20, 0]);
}

#[test]
fn an_immediate_repeat_neither_counts_nor_restarts_the_count() {
    let outcomes = [NOW, NOW, Outcome::NotProcessed, NOW, NOW, NOW];
    assert_eq!(waits(&doubling(), &outcomes), [0, 0, 0, 0, 8, 0]);
    // A second one in the same call waits for its delay like any failure.
    let outcomes = [Outcome::NotProcessed, NOW, NOW, Outcome::NotProcessed, NOW, NOW, NOW, NOW];
    assert_eq!(waits(&doubling(), &outcomes), [0, 0, 0, 4, 0, 0, 0, 64]);
}

#[test]
fn a_new_episode_restarts_the_count_and_a_pause_does_not() {
    let (policy, guards) = (doubling(), Guards::none());
    let after_three = |between: fn(RetryState) -> RetryState| {
        let mut state = RetryState::new();
        let decide = |state: &mut RetryState| {
            let decision =
                RetryMachine::new(&policy, state, Seed::new(1))
                    .decide_unguarded(NOW, NestedRetries::Allow, || Instant::ZERO);
            let Decision::Retry { after, permit, .. } = decision else { panic!("{decision:?}") };
            let _ = RetryMachine::new(&policy, state, Seed::new(1)).begin(permit, || Instant::ZERO, &guards);
            after
        };
        assert_eq!([(); 3].map(|()| decide(&mut state)), [Duration::ZERO; 3]);
        state = between(state);
        decide(&mut state)
    };
    assert!(after_three(|state| state) > secs(3));
    assert!(after_three(|state| state.pause(Seed::new(1), Instant::ZERO).resume(Instant::ZERO)) > secs(3));
    assert_eq!(
        after_three(|mut state| {
            RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1)).reset();
            state
        }),
        Duration::ZERO
    );
}

/// Generates what a server may send: nothing, or a hint of any length, often one that asks for an immediate retry.
fn answers() -> impl Strategy<Value = Vec<Outcome>> {
    let asked = || prop_oneof![2 => Just(Duration::ZERO), 1 => length()];
    let answer = prop_oneof![
        4 => asked().prop_map(reserved),
        1 => asked().prop_map(at_least),
        1 => Just(Outcome::TRANSIENT),
    ];
    prop_oneof![3 => prop::collection::vec(answer, 1..40), 1 => Just(vec![NOW; 40])]
}

/// Returns how many attempts a call can make at most until `end` whatever hints it gets, if its policy draws these
/// delays: of any four waits in a row, hints shorten three, and the worst choice is the longest three.
fn most_attempts(drawn: &[Duration], end: Duration) -> usize {
    let mut start = Duration::ZERO;
    for (group, delays) in drawn.chunks_exact(4).enumerate() {
        start = start.saturating_add(delays.iter().copied().min().unwrap_or_default());
        if start > end {
            return 4 * (group + 1);
        }
    }
    drawn.len() + 1
}

/// Returns how many attempts begin until `end`, if none of them takes any time.
fn attempts_until(end: Duration, waits: &[Duration]) -> usize {
    let starts = waits.iter().scan(Duration::ZERO, |start, wait| {
        *start = start.saturating_add(*wait);
        Some(*start)
    });
    1 + starts.filter(|start| *start <= end).count()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn no_server_shortens_four_waits_in_a_row(policy in any_policy(), seed: u64, answers in answers()) {
        let policy = policy.to_builder().unlimited_attempts().unlimited_elapsed().unlimited_hint().build().unwrap();
        let drawn: Vec<_> = policy.schedule(Seed::new(seed)).take(answers.len()).collect();
        let trace = Call::new(&policy).seed(seed).run(answers.iter().copied());
        let is_exact = |outcome: &Outcome| match outcome {
            Outcome::Failed { hint: Some(ServerHint::Reserved(_)), .. } => true,
            Outcome::Failed { hint, .. } => hint.is_some() && policy.hint_mode() == HintMode::Exact,
            _ => false,
        };
        let mut in_a_row = 0;
        for ((waited, drawn), answer) in trace.waits.iter().zip(&drawn).zip(&answers) {
            in_a_row = if is_exact(answer) && waited < drawn { in_a_row + 1 } else { 0 };
            prop_assert!(in_a_row <= 3, "{policy}: {:?} of {drawn:?}", trace.waits);
        }
    }

    /// The bound in time that follows, computed from the policy and its seed alone.
    #[test]
    fn hints_of_a_hostile_server_make_no_more_attempts_than_the_policy_bounds(
        policy in any_policy(), seed: u64, answers in answers(), end in length(),
    ) {
        let policy = policy.to_builder().unlimited_attempts().unlimited_elapsed().unlimited_hint().build().unwrap();
        let drawn: Vec<_> = policy.schedule(Seed::new(seed)).take(answers.len()).collect();
        // A hint that is a minimum makes no more attempts than none, but their draws differ.
        let is_minimum =
            |answer: &Outcome| matches!(answer, Outcome::Failed { hint: Some(ServerHint::AtLeast(_)), .. });
        let exact = answers.into_iter().filter(|answer| !is_minimum(answer));
        let trace = Call::new(&policy).seed(seed).run(exact);
        let attempts = attempts_until(end, &trace.waits);
        let most = most_attempts(&drawn, end);
        prop_assert!(attempts <= most, "{policy}: {attempts} of at most {most} attempts within {end:?}");
    }
}

#[test]
fn the_bound_is_reached() {
    let policy = Policy::constant(secs(1)).jitter(Jitter::None).unlimited_attempts().build().unwrap();
    let drawn: Vec<_> = policy.schedule(Seed::new(1)).take(40).collect();
    assert_eq!(most_attempts(&drawn, secs(5)), attempts_until(secs(5), &Call::new(&policy).run([NOW; 40]).waits));
    assert_eq!(most_attempts(&drawn, secs(5)), 24);
}
