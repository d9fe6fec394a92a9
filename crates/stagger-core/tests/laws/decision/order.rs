//! Every step of the table in `RetryMachine`'s documentation, alone and before every later one.

use core::time::Duration;

use stagger_core::{
    DelaySource, FailureKind, Guards, NestedRetries, Outcome, Policy, Seed, ServerHint, StopReason, guard::Permits,
    machine::Decision, machine::RetryMachine, machine::RetryState, profile::Profile,
};

use crate::laws::support::{RecordingBreaker, RecordingBudget, at, ms, secs};

/// The reasons to stop after a failure, in the order in which they are asked.
const STEPS: [StopReason; 7] = [
    StopReason::Attempts,
    StopReason::Exhausted,
    StopReason::Nested,
    StopReason::Hint,
    StopReason::Elapsed,
    StopReason::Breaker,
    StopReason::Budget,
];

const OUTCOMES: [Outcome; 6] = [
    Outcome::TRANSIENT,
    Outcome::throttled(None),
    Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None },
    Outcome::Success,
    Outcome::Permanent,
    Outcome::Cancelled,
];

/// A world in which all of `reasons` hold.
struct World {
    policy: Policy,
    budget: RecordingBudget,
    breaker: RecordingBreaker,
    reasons: Vec<StopReason>,
    hint: Option<ServerHint>,
}

impl World {
    /// `number` has a bit for each step.
    fn new(number: usize) -> Self {
        let reasons: Vec<_> =
            STEPS.into_iter().enumerate().filter(|(at, _)| number >> at & 1 == 1).map(|(_, s)| s).collect();
        let has = |stop| reasons.contains(&stop);
        let builder = if has(StopReason::Exhausted) { Policy::stop() } else { Policy::constant(ms(10)) };
        let policy = builder.max_attempts(if has(StopReason::Attempts) { 1 } else { 9 }).build().unwrap();
        let budget = if has(StopReason::Budget) { RecordingBudget::rejecting() } else { RecordingBudget::default() };
        let breaker = RecordingBreaker::default();
        breaker.set_rejects_from(has(StopReason::Breaker).then_some(Duration::ZERO));
        Self { policy, budget, breaker, hint: has(StopReason::Hint).then_some(ServerHint::DoNotRetry), reasons }
    }

    fn decide(&self, outcome: Outcome) -> Decision {
        let has = |stop| self.reasons.contains(&stop);
        let nested = if has(StopReason::Nested) { NestedRetries::Disable } else { NestedRetries::Allow };
        let guards = Guards::none().budget(&self.budget).breaker(&self.breaker).nested(nested);
        let deadline = if has(StopReason::Elapsed) { at(secs(1)) } else { at(secs(100)) };
        let mut state = RetryState::new();
        let mut retry = RetryMachine::new(&self.policy, &mut state, Seed::new(1)).deadline(Some(deadline));
        let permit = retry.begin(Permits::NONE, || at(secs(1)), &guards).unwrap();
        let outcome = match outcome {
            Outcome::Failed { kind, .. } => Outcome::Failed { kind, hint: self.hint },
            outcome => outcome,
        };
        retry.decide(outcome, permit, || at(secs(1)), &guards)
    }
}

fn worlds() -> impl Iterator<Item = World> {
    (0..1 << STEPS.len()).map(World::new)
}

/// All 128 sets of reasons, so all pairs of them too.
#[test]
fn of_all_reasons_to_stop_the_earliest_in_the_table_wins() {
    for world in worlds() {
        for outcome in &OUTCOMES[..3] {
            let got = world.decide(*outcome);
            match world.reasons.first() {
                Some(&stop) => assert_eq!(got, Decision::Stop(stop), "{:?} after {outcome:?}", world.reasons),
                None => assert!(matches!(got, Decision::Retry { source: DelaySource::Schedule, .. }), "{got:?}"),
            }
        }
    }
}

#[test]
fn success_permanence_and_cancellation_come_before_every_other_reason() {
    for world in worlds() {
        assert_eq!(world.decide(Outcome::Success), Decision::Done);
        assert_eq!(world.decide(Outcome::Permanent), Decision::Stop(StopReason::Permanent));
        let unrepeatable = Outcome::UnsafeToRetry(FailureKind::Transient);
        assert_eq!(world.decide(unrepeatable), Decision::Stop(StopReason::UnsafeToRetry));
        assert_eq!(world.decide(Outcome::Cancelled), Decision::Stop(StopReason::Cancelled));
    }
}

/// Step 4 comes before steps 5 to 12, but asks the limit of time and the breaker itself; where they forbid it, the
/// failure is one like any other.
#[test]
fn what_was_not_processed_is_repeated_unless_time_or_breaker_forbid_it() {
    for world in worlds() {
        let got = world.decide(Outcome::NotProcessed);
        let has = |stop| world.reasons.contains(&stop);
        if has(StopReason::Elapsed) || has(StopReason::Breaker) {
            // It carries no hint, so that reason does not hold.
            let want = world.reasons.iter().copied().find(|&stop| stop != StopReason::Hint).unwrap();
            assert_eq!(got, Decision::Stop(want), "{:?}", world.reasons);
        } else {
            assert!(
                matches!(got, Decision::Retry { after: Duration::ZERO, source: DelaySource::Transparent, .. }),
                "{:?}: {got:?}",
                world.reasons
            );
        }
    }
}

/// The guards are told first, whatever comes then; the budget pays last, so that no refusal has to be undone.
#[test]
fn every_outcome_is_told_first_and_the_only_charge_comes_last() {
    for world in worlds() {
        for outcome in OUTCOMES {
            let got = world.decide(outcome);
            let mut want = vec!["on_first_attempt".to_owned(), format!("record 1 {:?}", outcome.verdict())];
            let asked = matches!(got, Decision::Retry { .. } | Decision::Stop(StopReason::Budget));
            if let (Outcome::Failed { kind, .. }, true) = (outcome, asked) {
                want.push(format!("try_acquire {kind:?}"));
            }
            // The purse numbers its loans on, so it is a fresh one for every outcome.
            let events = core::mem::take(&mut world.budget.events());
            let settled = events.iter().map(|event| event.replace(char::is_numeric, "1")).collect::<Vec<_>>();
            assert_eq!(settled, want, "{:?} after {outcome:?}", world.reasons);
            let records = world.breaker.records();
            assert_eq!(records.len(), 1);
            assert_eq!(records[0].1.verdict(), outcome.verdict());
        }
    }
}

#[test]
fn outcomes_have_the_verdicts_that_are_documented() {
    use stagger_core::guard::ServerHealth::{Ailing, Healthy, Unknown};
    for (outcome, want) in [
        (Outcome::Success, Healthy),
        (Outcome::Permanent, Healthy),
        (Outcome::UnsafeToRetry(FailureKind::Transient), Ailing),
        (Outcome::UnsafeToRetry(FailureKind::Throttled), Ailing),
        (Outcome::UnsafeToRetry(FailureKind::LocalExhaustion), Unknown),
        (Outcome::TRANSIENT, Ailing),
        (Outcome::throttled(Some(ServerHint::DoNotRetry)), Ailing),
        (Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }, Unknown),
        (Outcome::NotProcessed, Unknown),
        (Outcome::Cancelled, Unknown),
    ] {
        assert_eq!(outcome.verdict(), want, "{outcome:?}");
    }
}

#[test]
fn the_breaker_is_asked_about_the_time_of_the_retry_and_not_about_now() {
    let (breaker, policy) = (RecordingBreaker::default(), Policy::constant(ms(10)).build().unwrap());
    let guards = Guards::none().breaker(&breaker);
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, || at(secs(1)), &guards).unwrap();
    let Decision::Retry { after, .. } = retry.decide(Outcome::TRANSIENT, permit, || at(secs(1)), &guards) else {
        panic!("nothing forbids it")
    };
    assert_eq!(breaker.checked_waits(), [after]);
    assert!(after >= ms(5));
}

/// A schedule that has ended is told apart from attempts that are used up.
#[test]
fn a_stop_backoff_is_exhausted_after_its_first_attempt() {
    for (attempts, want) in [(4, StopReason::Exhausted), (1, StopReason::Attempts)] {
        let policy = Policy::stop().max_attempts(attempts).build().unwrap();
        let trace = crate::laws::support::Call::new(&policy).failing();
        assert_eq!((trace.attempts, trace.stop), (1, Some(want)));
    }
}

#[test]
fn reasons_are_fragments_that_say_who_refused() {
    for (stop, want) in [
        (StopReason::Permanent, "the failure is permanent"),
        (StopReason::UnsafeToRetry, "it may have been carried out, or cannot be made again"),
        (StopReason::Attempts, "every attempt was used"),
        (StopReason::Elapsed, "the time limit left no room for another attempt"),
        (StopReason::Hint, "the server asked not to come back, or not soon enough"),
        (StopReason::Budget, "this client's own retry budget is used up"),
        (StopReason::Breaker, "this client's own circuit breaker is open"),
        (StopReason::Nested, "an outer layer is already retrying"),
        (StopReason::Cancelled, "cancelled"),
        (StopReason::Exhausted, "the schedule has no further delay"),
    ] {
        assert_eq!(stop.to_string(), want);
    }
}

#[test]
fn both_ways_to_decide_without_guards_are_one() {
    let floor = Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(1))));
    let (guards, seed) = (Guards::none(), Seed::new(5));
    for policy in Profile::all().map(Profile::policy) {
        for outcome in [Outcome::TRANSIENT, floor, Outcome::NotProcessed, Outcome::Permanent, Outcome::Success] {
            let mut states = [RetryState::new(), RetryState::new()];
            for second in 0..9 {
                let now = || at(secs(second));
                let decisions = [false, true].map(|guarded| {
                    let mut retry = RetryMachine::new(&policy, &mut states[usize::from(guarded)], seed);
                    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
                    if guarded {
                        retry.decide(outcome, permit, now, &guards)
                    } else {
                        retry.decide_unguarded(outcome, now)
                    }
                });
                assert_eq!(decisions[0], decisions[1], "{policy}, {outcome:?}");
            }
            assert_eq!(states[0], states[1], "{policy}, {outcome:?}");
        }
    }
}
