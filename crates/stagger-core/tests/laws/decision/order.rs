//! Every step of the table in `RetryMachine`'s documentation, alone and combined with every later step.

use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::profile::Profile;
use stagger_core::{
    DelaySource, FailureKind, Guard, Guards, NestedRetries, Outcome, Policy, Seed, ServerHint, StopReason,
};

use crate::laws::support::{RecordingGuard, at, ms, secs};

/// The reasons to stop after a failure, in the order in which they are checked.
const STEPS: [StopReason; 8] = [
    StopReason::Attempts,
    StopReason::Exhausted,
    StopReason::Nested,
    StopReason::Hint,
    StopReason::Deadline,
    StopReason::Elapsed,
    StopReason::BREAKER,
    StopReason::BUDGET,
];

const OUTCOMES: [Outcome; 6] = [
    Outcome::TRANSIENT,
    Outcome::throttled(None),
    Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None },
    Outcome::Success,
    Outcome::Permanent,
    Outcome::Cancelled,
];

/// A setup in which all of `reasons` apply.
struct Scenario {
    policy: Policy,
    budget: RecordingGuard,
    breaker: RecordingGuard,
    reasons: Vec<StopReason>,
    hint: Option<ServerHint>,
}

impl Scenario {
    /// Creates the scenario whose reasons are the bits set in `bits`, one bit per step.
    fn new(bits: usize) -> Self {
        let reasons: Vec<_> =
            STEPS.into_iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, s)| s).collect();
        let has = |stop| reasons.contains(&stop);
        let builder = if has(StopReason::Exhausted) { Policy::stop() } else { Policy::constant(ms(10)) };
        let policy = builder
            .max_attempts(if has(StopReason::Attempts) { 1 } else { 9 })
            .max_elapsed(if has(StopReason::Elapsed) { ms(10) } else { secs(100) })
            .build()
            .unwrap();
        let budget =
            if has(StopReason::BUDGET) { RecordingGuard::budget().rejecting() } else { RecordingGuard::budget() };
        let breaker = RecordingGuard::breaker();
        breaker.set_refuses_from(has(StopReason::BREAKER).then_some(Duration::ZERO));
        Self { policy, budget, breaker, hint: has(StopReason::Hint).then_some(ServerHint::DoNotRetry), reasons }
    }

    fn decide(&self, outcome: Outcome) -> Decision {
        let has = |stop| self.reasons.contains(&stop);
        let nested = if has(StopReason::Nested) { NestedRetries::Disable } else { NestedRetries::Allow };
        let list: [&dyn Guard; 2] = [&self.breaker, &self.budget];
        let guards = Guards::of(&list).nested(nested);
        let deadline = if has(StopReason::Deadline) { at(secs(1)) } else { at(secs(100)) };
        let mut state = RetryState::new();
        let mut retry = RetryMachine::new(&self.policy, &mut state, Seed::new(1)).deadline(Some(deadline));
        let permit = retry.begin(Permits::NONE, || at(secs(1) - ms(11)), &guards).unwrap();
        let outcome = match outcome {
            Outcome::Failed { kind, .. } => Outcome::Failed { kind, hint: self.hint },
            outcome => outcome,
        };
        retry.decide(outcome, permit, || at(secs(1)), &guards)
    }
}

fn scenarios() -> impl Iterator<Item = Scenario> {
    (0..1 << STEPS.len()).map(Scenario::new)
}

/// All 256 sets of reasons, which includes all pairs.
#[test]
fn the_earliest_stop_reason_in_the_table_wins() {
    for scenario in scenarios() {
        for outcome in &OUTCOMES[..3] {
            let got = scenario.decide(*outcome);
            match scenario.reasons.first() {
                Some(&stop) => assert_eq!(got, Decision::Stop(stop), "{:?} after {outcome:?}", scenario.reasons),
                None => assert!(matches!(got, Decision::Retry { source: DelaySource::Schedule, .. }), "{got:?}"),
            }
        }
    }
}

#[test]
fn final_outcomes_take_precedence_over_every_other_reason() {
    for scenario in scenarios() {
        assert_eq!(scenario.decide(Outcome::Success), Decision::Done);
        assert_eq!(scenario.decide(Outcome::Permanent), Decision::Stop(StopReason::Permanent));
        let unsafe_to_retry = Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None };
        assert_eq!(scenario.decide(unsafe_to_retry), Decision::Stop(StopReason::UnsafeToRetry));
        assert_eq!(scenario.decide(Outcome::Cancelled), Decision::Stop(StopReason::Cancelled));
    }
}

/// Step 4 comes before steps 5 to 12, but checks the time limits and the breaker itself. If they reject the repeat, the
/// failure is handled like any other.
#[test]
fn not_processed_is_repeated_unless_limit_or_breaker_rejects() {
    for scenario in scenarios() {
        let got = scenario.decide(Outcome::NotProcessed);
        let has = |stop| scenario.reasons.contains(&stop);
        if has(StopReason::Deadline) || has(StopReason::Elapsed) || has(StopReason::BREAKER) {
            // `NotProcessed` carries no hint, so that reason does not apply.
            let want = scenario.reasons.iter().copied().find(|&stop| stop != StopReason::Hint).unwrap();
            assert_eq!(got, Decision::Stop(want), "{:?}", scenario.reasons);
        } else {
            assert!(
                matches!(got, Decision::Retry { after: Duration::ZERO, source: DelaySource::Transparent, .. }),
                "{:?}: {got:?}",
                scenario.reasons
            );
        }
    }
}

/// Outcomes are always recorded first. The budget is charged last, so the question of another guard needs no refund.
#[test]
fn outcomes_are_recorded_first_and_the_budget_charged_last() {
    for scenario in scenarios() {
        for outcome in OUTCOMES {
            let got = scenario.decide(outcome);
            let mut want = vec!["ask first".to_owned(), format!("made 1 {:?}", outcome.verdict())];
            let acquires = matches!(got, Decision::Retry { .. } | Decision::Stop(StopReason::BUDGET));
            if let (Outcome::Failed { kind, .. }, true) = (outcome, acquires) {
                want.push(format!("reserve {kind:?}"));
            }
            // The budget numbers its permits consecutively, and the scenario is reused for every outcome.
            let events = core::mem::take(&mut scenario.budget.events());
            let normalized = events.iter().map(|event| event.replace(char::is_numeric, "1")).collect::<Vec<_>>();
            assert_eq!(normalized, want, "{:?} after {outcome:?}", scenario.reasons);
            let records = scenario.breaker.records();
            assert_eq!(records.len(), 1);
            assert_eq!(records[0].1.verdict(), outcome.verdict());
        }
    }
}

#[test]
fn outcomes_have_the_documented_verdicts() {
    use stagger_core::guard::ServerHealth::{Ailing, Healthy, Unknown};
    for (outcome, want) in [
        (Outcome::Success, Healthy),
        (Outcome::Permanent, Healthy),
        (Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None }, Ailing),
        (Outcome::UnsafeToRetry { kind: FailureKind::Throttled, hint: None }, Ailing),
        (Outcome::UnsafeToRetry { kind: FailureKind::LocalExhaustion, hint: None }, Unknown),
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
fn the_breaker_is_asked_about_the_start_of_the_retry() {
    let (breaker, policy) = (RecordingGuard::breaker(), Policy::constant(ms(10)).build().unwrap());
    let list: [&dyn Guard; 1] = [&breaker];
    let guards = Guards::of(&list);
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, || at(secs(1)), &guards).unwrap();
    let Decision::Retry { after, .. } = retry.decide(Outcome::TRANSIENT, permit, || at(secs(1)), &guards) else {
        panic!("the retry is allowed")
    };
    assert_eq!(breaker.checked_waits(), [after]);
    assert!(after >= ms(5));
}

/// `Exhausted` and `Attempts` are distinct reasons.
#[test]
fn a_stop_backoff_is_exhausted_after_its_first_attempt() {
    for (attempts, want) in [(4, StopReason::Exhausted), (1, StopReason::Attempts)] {
        let policy = Policy::stop().max_attempts(attempts).build().unwrap();
        let trace = crate::laws::support::Call::new(&policy).failing();
        assert_eq!((trace.attempts, trace.stop), (1, Some(want)));
    }
}

#[test]
fn stop_reasons_display_which_guard_or_limit_rejected() {
    for (stop, want) in [
        (StopReason::Permanent, "the failure is permanent"),
        (StopReason::UnsafeToRetry, "it may have been carried out, or cannot be made again"),
        (StopReason::Attempts, "every attempt was used"),
        (StopReason::Elapsed, "max_elapsed left no room for another attempt"),
        (StopReason::Deadline, "the deadline left no room for another attempt"),
        (StopReason::Hint, "the server asked not to come back, or not soon enough"),
        (StopReason::BUDGET, "this client's own retry budget is used up"),
        (StopReason::BREAKER, "this client's own circuit breaker is open"),
        (StopReason::Guard("bulkhead"), "this client's own guard `bulkhead` did not let it start"),
        (StopReason::Nested, "an outer layer is already retrying"),
        (StopReason::Cancelled, "cancelled"),
        (StopReason::Exhausted, "the schedule has no further delay"),
    ] {
        assert_eq!(stop.to_string(), want);
    }
}

#[test]
fn decide_unguarded_equals_decide_without_guards() {
    let throttled = Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(1))));
    let (guards, seed) = (Guards::none(), Seed::new(5));
    for policy in Profile::all().map(Profile::policy) {
        for outcome in [Outcome::TRANSIENT, throttled, Outcome::NotProcessed, Outcome::Permanent, Outcome::Success] {
            let mut states = [RetryState::new(), RetryState::new()];
            for second in 0..9 {
                let now = || at(secs(second));
                let decisions = [false, true].map(|guarded| {
                    let mut retry = RetryMachine::new(&policy, &mut states[usize::from(guarded)], seed);
                    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
                    if guarded {
                        retry.decide(outcome, permit, now, &guards)
                    } else {
                        retry.decide_unguarded(outcome, guards.nesting(), now)
                    }
                });
                assert_eq!(decisions[0], decisions[1], "{policy}, {outcome:?}");
            }
            assert_eq!(states[0], states[1], "{policy}, {outcome:?}");
        }
    }
}
