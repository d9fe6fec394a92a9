//! Every permit is recorded or released exactly once, on every path.

use proptest::prelude::*;
use stagger_core::guard::{BreakerPermit, BudgetPermit, Permits, ServerHealth};
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{FailureKind, Guards, Instant, Outcome, Policy, Seed, StopReason};

use crate::laws::support::{RecordingBreaker, RecordingBudget, at, cases, ms, secs};

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The attempt ends with this outcome.
    Ends(Outcome),
    /// The attempt ends with this outcome after an uptime that resets the attempts.
    EndsHealthy(Outcome),
    /// The call is dropped.
    Dropped(During),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum During {
    Sleep,
    /// Between `begin` and the attempt.
    Begun,
    Attempt,
}

fn event() -> impl Strategy<Value = (Event, bool, bool, bool)> {
    let outcome = prop_oneof![
        4 => Just(Outcome::TRANSIENT),
        2 => Just(Outcome::NotProcessed),
        1 => Just(Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }),
        1 => Just(Outcome::Success),
        1 => Just(Outcome::Permanent),
        1 => Just(Outcome::Cancelled),
    ];
    let event = prop_oneof![
        8 => outcome.clone().prop_map(Event::Ends),
        2 => outcome.prop_map(Event::EndsHealthy),
        1 => prop::sample::select(vec![During::Sleep, During::Begun, During::Attempt]).prop_map(Event::Dropped),
    ];
    let rarely = || prop::bool::weighted(0.1);
    (event, rarely(), rarely(), rarely())
}

/// A call to which events are applied.
struct TestCall<'a> {
    policy: &'a Policy,
    state: RetryState,
    guards: Guards<'a>,
    permit: Permits,
}

impl TestCall<'_> {
    /// Applies `event`; returns `Err` if it ends the call.
    fn apply(&mut self, event: Event) -> Result<(), Option<StopReason>> {
        let now = || at(secs(1));
        let permit = Permits::take(&mut self.permit);
        let mut retry = RetryMachine::new(self.policy, &mut self.state, Seed::new(1));
        if let Event::Dropped(During::Sleep) = event {
            self.guards.release(permit);
            return Err(None);
        }
        let permit = retry.begin(permit, now, &self.guards)?;
        let outcome = match event {
            Event::Dropped(During::Begun) => {
                self.guards.release_begun(permit, now);
                return Err(None);
            }
            Event::Dropped(_) => {
                self.guards.abandon(permit, now);
                return Err(None);
            }
            Event::Ends(outcome) => outcome,
            Event::EndsHealthy(outcome) => {
                assert!(retry.reset_if_healthy(secs(60)));
                outcome
            }
        };
        match retry.decide(outcome, permit, now, &self.guards) {
            Decision::Retry { permit, .. } => {
                self.permit = permit;
                Ok(())
            }
            Decision::Stop(stop) => Err(Some(stop)),
            _ => Err(None),
        }
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn a_permit_is_recorded_or_released_exactly_once(
        events in prop::collection::vec(event(), 1..30),
        with_budget in prop::bool::weighted(0.9),
        with_breaker in prop::bool::weighted(0.9),
    ) {
        let (budget, breaker) = (RecordingBudget::default(), RecordingBreaker::default());
        let mut guards = Guards::none();
        if with_budget { guards = guards.budget(&budget); }
        if with_breaker { guards = guards.breaker(&breaker); }
        let policy = Policy::constant(ms(10)).max_attempts(12).stable_after(secs(10)).build().unwrap();
        let mut call = TestCall { policy: &policy, state: RetryState::new(), guards, permit: Permits::NONE };
        let mut ended = false;
        for (event, tight, open, rejects) in events {
            budget.set_rejects(tight);
            breaker.set_open(open);
            breaker.set_rejects_from(rejects.then_some(ms(0)));
            // Between attempts, one budget permit is held for the next retry, and no breaker permit.
            if let Err(_stop) = call.apply(event) {
                ended = true;
                break;
            }
            prop_assert_eq!((budget.outstanding(), breaker.outstanding()), (usize::from(with_budget), 0));
        }
        if !ended {
            guards.release(Permits::take(&mut call.permit));
        }
        budget.assert_balanced();
        breaker.assert_balanced();
    }
}

#[test]
fn a_breaker_rejecting_the_first_attempt_spares_the_budget() {
    let (budget, breaker, policy) = (RecordingBudget::default(), RecordingBreaker::default(), Policy::DEFAULT);
    breaker.set_open(true);
    let guards = Guards::none().budget(&budget).breaker(&breaker);
    let mut state = RetryState::new();
    let got = RetryMachine::new(&policy, &mut state, Seed::new(1)).begin(Permits::NONE, || at(secs(1)), &guards);
    assert_eq!(got, Err(StopReason::Breaker));
    assert_eq!((budget.events(), state.attempt()), (vec![], 0));
    budget.assert_balanced();
}

#[test]
fn a_breaker_rejecting_a_granted_retry_releases_its_permit() {
    let (budget, breaker, policy) = (RecordingBudget::default(), RecordingBreaker::default(), Policy::DEFAULT);
    let guards = Guards::none().budget(&budget).breaker(&breaker);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::TRANSIENT, permit, now, &guards) else {
        panic!("the retry is allowed")
    };
    breaker.set_open(true);
    assert_eq!(retry.begin(permit, now, &guards), Err(StopReason::Breaker));
    assert_eq!(retry.attempt(), 1, "a rejected attempt must not be counted");
    assert_eq!(budget.events(), ["on_first_attempt", "record 1 Ailing", "try_acquire Transient", "release 2"]);
    budget.assert_balanced();
    breaker.assert_balanced();
}

type DropCall = fn(&Guards<'_>, Permits, fn() -> Instant);

#[test]
fn a_dropped_call_is_neutral_and_charged_only_if_attempted() {
    let (now, later) = (|| at(secs(1)), || at(secs(2)));
    let cases: [(DropCall, &str); 2] = [
        (|guards, permit, now| guards.abandon(permit, now), "record 1 Unknown"),
        (|guards, permit, now| guards.release_begun(permit, now), "release 1"),
    ];
    for (drop, event) in cases {
        let (budget, breaker, policy) = (RecordingBudget::default(), RecordingBreaker::default(), Policy::DEFAULT);
        let guards = Guards::none().budget(&budget).breaker(&breaker);
        let permit = RetryMachine::new(&policy, &mut RetryState::new(), Seed::new(1))
            .begin(Permits::NONE, now, &guards)
            .unwrap();
        drop(&guards, permit, later);
        assert_eq!(breaker.records(), [(1, Outcome::Cancelled)]);
        assert_eq!(budget.events(), ["on_first_attempt", event]);
        assert_eq!(Outcome::Cancelled.verdict(), ServerHealth::Unknown);
    }
}

#[test]
fn taking_permits_leaves_none() {
    let (budget, policy) = (RecordingBudget::default(), Policy::DEFAULT);
    let guards = Guards::none().budget(&budget);
    let mut state = RetryState::new();
    let now = || at(secs(1));
    let mut held = RetryMachine::new(&policy, &mut state, Seed::new(1)).begin(Permits::NONE, now, &guards).unwrap();
    assert_ne!(held, Permits::NONE);
    let taken = Permits::take(&mut held);
    assert_eq!(held, Permits::NONE);
    guards.abandon(taken, now);
    budget.assert_balanced();
}

/// The default methods of `Budget`.
#[test]
fn budget_defaults_are_no_first_permit_and_unknown_balance() {
    #[derive(Debug)]
    struct Plain;
    impl stagger_core::Budget for Plain {
        fn try_acquire(&self, _: FailureKind, _: &dyn stagger_core::guard::Now) -> Option<BudgetPermit> {
            None
        }
        fn record(&self, _: BudgetPermit, _: &Outcome, _: &dyn stagger_core::guard::Now) {}
        fn release(&self, _: BudgetPermit) {}
    }
    let plain: &dyn stagger_core::Budget = &Plain;
    assert_eq!(plain.on_first_attempt(&at(secs(1))), BudgetPermit::NONE);
    assert_eq!(plain.available(), None);
    assert_ne!(BudgetPermit(1), BudgetPermit::NONE);
    assert_ne!(BreakerPermit(1), BreakerPermit::NONE);
}

#[test]
fn breaker_open_displays_the_remaining_time() {
    let open = stagger_core::BreakerOpen { retry_in: ms(1_260) };
    assert_eq!(open.to_string(), "this client's own circuit breaker is open for another 1.3s");
}
