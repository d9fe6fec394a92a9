//! For any sequence of outcomes, decisions follow the policy, the hint and the guards.

use core::cell::Cell;
use core::time::Duration;

use arbitrary::Arbitrary;
use stagger_core::{
    DelaySource, FailureKind, Guard, Guards, HintMode, Instant, NestedRetries, Outcome, Policy, Seed, ServerHint,
    StopReason, guard::Permits, machine::Decision, machine::RetryMachine, machine::RetryState,
};

use crate::guards::FuzzedGuard;
use crate::values::{AnyDuration, AnyPolicy, LONGEST};

/// A call with the outcomes of its attempts.
#[derive(Arbitrary, Debug)]
pub struct Input {
    policy: AnyPolicy,
    seed: u64,
    start: u64,
    deadline: Option<u64>,
    /// The answers of each guard.
    guards: [Option<u64>; 4],
    nested: bool,
    events: Vec<Event>,
}

#[derive(Arbitrary, Debug)]
struct Event {
    clock: ClockStep,
    outcome: AnyOutcome,
    /// How often the driver asks for a turn at most, before it begins.
    turns: u8,
    /// Whether the caller drops the call during the attempt.
    dropped: bool,
}

/// A step of the clock. A custom clock can go backward, although a monotonic one cannot.
#[derive(Arbitrary, Debug)]
enum ClockStep {
    None,
    Forward(AnyDuration),
    Back(AnyDuration),
}

#[derive(Arbitrary, Debug)]
enum AnyOutcome {
    Success,
    Permanent,
    NotProcessed,
    Cancelled,
    Failed(AnyKind, Option<AnyHint>),
    Healthy(AnyDuration),
}

#[derive(Arbitrary, Debug)]
enum AnyKind {
    Transient,
    Throttled,
    LocalExhaustion,
}

#[derive(Arbitrary, Debug)]
enum AnyHint {
    AtLeast(AnyDuration),
    Reserved(AnyDuration),
    DoNotRetry,
}

/// Runs the call and checks each decision.
pub fn check(input: &Input) {
    let Ok(policy) = input.policy.build() else { return };
    let fuzzed: Vec<_> = input.guards.into_iter().flatten().map(FuzzedGuard::new).collect();
    let list: Vec<&dyn Guard> = fuzzed.iter().map(|guard| guard as &dyn Guard).collect();
    let guards = Guards::of(&list).nested(if input.nested { NestedRetries::Disable } else { NestedRetries::Allow });
    Call { policy, input, guards, now: Cell::new(Instant::from_nanos(input.start)), reads: Cell::new(0) }.run();
    for guard in &fuzzed {
        assert_eq!(guard.outstanding(), 0, "every permit is returned exactly once");
    }
}

struct Call<'a> {
    policy: Policy,
    input: &'a Input,
    guards: Guards<'a>,
    now: Cell<Instant>,
    /// Number of clock reads since the last check.
    reads: Cell<u32>,
}

impl Call<'_> {
    fn run(&self) {
        let deadline = self.input.deadline.map(Instant::from_nanos);
        let mut state = RetryState::new();
        let mut permit = Permits::NONE;
        // The number of the attempt, and how many transparent repeats were made since the last reset.
        let (mut made, mut repeats) = (0, 0);
        // How many waits in a row were as long as an exact hint said.
        let mut exact = 0;
        for event in &self.input.events {
            self.now.set(self.after(&event.clock));
            let mut retry = RetryMachine::new(&self.policy, &mut state, Seed::new(self.input.seed)).deadline(deadline);
            let mut turn = Ok(Duration::from_nanos(1));
            for _ in 0..event.turns % 4 {
                if turn.is_ok_and(|wait| !wait.is_zero()) {
                    turn = retry.turn(&mut permit, || self.read(), &self.guards);
                    self.read_at_most_once();
                }
            }
            let begun = match turn {
                Ok(Duration::ZERO) => Ok(permit),
                Ok(_) => retry.begin(permit, || self.read(), &self.guards),
                Err(stop) => Err(stop),
            };
            self.read_at_most_once();
            permit = match begun {
                Ok(permit) => permit,
                Err(StopReason::Deadline) => {
                    let passed = deadline.is_some_and(|deadline| self.now.get() >= deadline);
                    return assert!(passed, "the deadline has not passed");
                }
                Err(stop) => return assert_eq!(stop, StopReason::Guard(FuzzedGuard::NAME)),
            };
            let (outcome, lived) = event.outcome.outcome();
            let repeated = retry.attempt() == made;
            made = retry.attempt();
            assert!(!repeated || repeats == 1, "only a transparent repeat does not count as an attempt");
            assert!(self.policy.max_attempts().is_none_or(|most| made <= most.get()), "{made} attempts");
            if event.dropped {
                return self.guards.abandon(permit, || self.read());
            }
            if lived.is_some_and(|lived| retry.reset_if_healthy(lived)) {
                (made, repeats, exact) = (0, 0, 0);
            }
            let decision = retry.decide(outcome, permit, || self.read(), &self.guards);
            self.read_at_most_once();
            let Decision::Retry { after, source, permit: granted } = decision else {
                return self.check_stop(outcome, &decision);
            };
            repeats += u32::from(source == DelaySource::Transparent);
            self.check_delay(outcome, after, source, repeats);
            match self.exact_hint(outcome) {
                Some(asked) if after > asked => assert!(exact >= 3, "{after:?} instead of {asked:?}, after {exact}"),
                Some(_) => exact += 1,
                None if source != DelaySource::Transparent => exact = 0,
                None => {}
            }
            self.check_limits(&retry, after, deadline);
            let resolution = Duration::from_millis(1);
            let ticks = retry.on_ticks(after, source, resolution);
            assert!(
                ticks <= after + resolution && (source != DelaySource::Hint || ticks == after),
                "{after:?}: {ticks:?}"
            );
            permit = granted;
        }
        self.guards.release(permit, || self.now.get());
    }

    fn read(&self) -> Instant {
        self.reads.set(self.reads.get() + 1);
        self.now.get()
    }

    fn read_at_most_once(&self) {
        assert!(self.reads.take() <= 1, "the clock is read at most once per step");
    }

    fn after(&self, step: &ClockStep) -> Instant {
        let now = self.now.get();
        match step {
            ClockStep::None => now,
            ClockStep::Forward(duration) => now.saturating_add(duration.0),
            ClockStep::Back(duration) => {
                let nanos = u64::try_from(duration.0.as_nanos()).unwrap_or(u64::MAX);
                Instant::from_nanos(now.as_nanos().saturating_sub(nanos))
            }
        }
    }

    fn check_stop(&self, outcome: Outcome, decision: &Decision) {
        match (outcome, decision) {
            (Outcome::Success, Decision::Done)
            | (Outcome::Permanent, Decision::Stop(StopReason::Permanent))
            | (Outcome::Cancelled, Decision::Stop(StopReason::Cancelled)) => {}
            (Outcome::Failed { .. } | Outcome::NotProcessed, Decision::Stop(stop)) => {
                let expected = match stop {
                    StopReason::Attempts => self.policy.max_attempts().is_some(),
                    StopReason::Elapsed => self.policy.max_elapsed().is_some(),
                    StopReason::Deadline => self.input.deadline.is_some(),
                    StopReason::Hint => matches!(outcome, Outcome::Failed { hint: Some(_), .. }),
                    StopReason::Guard(name) => *name == FuzzedGuard::NAME,
                    StopReason::Nested => self.input.nested,
                    StopReason::Exhausted => self.policy.bounds(1).is_none(),
                    _ => false,
                };
                assert!(expected, "{outcome:?} ended with {stop:?}");
            }
            _ => panic!("{outcome:?} ended with {decision:?}"),
        }
    }

    fn check_delay(&self, outcome: Outcome, after: Duration, source: DelaySource, repeats: u32) {
        assert!(!self.input.nested || source == DelaySource::Transparent, "a nested call does not retry");
        match (outcome, source) {
            (Outcome::NotProcessed, DelaySource::Transparent) => assert_eq!((after, repeats), (Duration::ZERO, 1)),
            (Outcome::Failed { hint: Some(hint), .. }, DelaySource::Hint) => {
                let asked = match hint {
                    ServerHint::AtLeast(asked) | ServerHint::Reserved(asked) => asked,
                    _ => panic!("retried although the server forbids it"),
                };
                assert!(self.policy.max_hint().is_none_or(|longest| asked <= longest), "{asked:?} is above max_hint");
                let asked = asked.min(LONGEST);
                match (hint, self.policy.hint_mode()) {
                    (ServerHint::AtLeast(_), HintMode::Clamp(_)) => {}
                    _ => assert!(after >= asked, "{after:?} is below the hint of {asked:?}"),
                }
            }
            (Outcome::Failed { kind: _, hint: None } | Outcome::NotProcessed, DelaySource::Schedule) => {
                if let (Some(cap), false) = (self.policy.cap(), self.is_factor()) {
                    assert!(after <= cap, "{after:?} is above the cap");
                }
                assert!(after >= self.policy.floor(), "{after:?} is below the floor");
            }
            _ => panic!("{outcome:?} is retried because of {source:?}"),
        }
    }

    /// Returns the hint, if the retry waits as long as it says, with nothing added.
    fn exact_hint(&self, outcome: Outcome) -> Option<Duration> {
        match outcome {
            Outcome::Failed { hint: Some(ServerHint::Reserved(asked)), .. } => Some(asked.min(LONGEST)),
            Outcome::Failed { hint: Some(ServerHint::AtLeast(asked)), .. } => {
                (self.policy.hint_mode() == HintMode::Exact).then(|| asked.min(LONGEST))
            }
            _ => None,
        }
    }

    fn check_limits(&self, retry: &RetryMachine<'_>, after: Duration, deadline: Option<Instant>) {
        let starts = self.now.get().saturating_add(after);
        if let (Some(limit), Some(elapsed)) = (self.policy.max_elapsed(), retry.elapsed(starts)) {
            assert!(elapsed <= limit, "the retry starts after {elapsed:?} of {limit:?}");
        }
        assert!(
            deadline.is_none_or(|deadline| starts < deadline),
            "the retry starts at {starts:?}, after the deadline"
        );
    }

    fn is_factor(&self) -> bool {
        matches!(self.policy.jitter(), stagger_core::Jitter::Factor(_))
    }
}

impl AnyOutcome {
    /// Returns the outcome, and the lifetime of the connection if one was open before it was lost.
    fn outcome(&self) -> (Outcome, Option<Duration>) {
        match self {
            Self::Success => (Outcome::Success, None),
            Self::Permanent => (Outcome::Permanent, None),
            Self::NotProcessed => (Outcome::NotProcessed, None),
            Self::Cancelled => (Outcome::Cancelled, None),
            Self::Healthy(lived) => (Outcome::TRANSIENT, Some(lived.0)),
            Self::Failed(kind, hint) => {
                let kind = match kind {
                    AnyKind::Transient => FailureKind::Transient,
                    AnyKind::Throttled => FailureKind::Throttled,
                    AnyKind::LocalExhaustion => FailureKind::LocalExhaustion,
                };
                let hint = hint.as_ref().map(|hint| match hint {
                    AnyHint::AtLeast(duration) => ServerHint::AtLeast(duration.0),
                    AnyHint::Reserved(duration) => ServerHint::Reserved(duration.0),
                    AnyHint::DoNotRetry => ServerHint::DoNotRetry,
                });
                (Outcome::Failed { kind, hint }, None)
            }
        }
    }
}
