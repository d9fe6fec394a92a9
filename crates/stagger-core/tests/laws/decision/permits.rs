//! What the guards lend is settled exactly once, whatever happens.

use proptest::prelude::*;
use stagger_core::{
    FailureKind, Guards, Instant, Outcome, Policy, Seed, StopReason, guard::BreakerPermit, guard::BudgetPermit,
    guard::Permits, guard::ServerHealth, machine::Decision, machine::RetryMachine, machine::RetryState,
};

use crate::laws::support::{RecordingBreaker, RecordingBudget, at, cases, ms, secs};

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The attempt ends like this.
    Ends(Outcome),
    /// The same, after a life that is long enough for the count to start again.
    EndsHealthy(Outcome),
    /// The call is dropped.
    Dropped(During),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum During {
    Sleep,
    /// Between `begin` and the attempt.
    Pause,
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
        1 => prop::sample::select(vec![During::Sleep, During::Pause, During::Attempt]).prop_map(Event::Dropped),
    ];
    let rarely = || prop::bool::weighted(0.1);
    (event, rarely(), rarely(), rarely())
}

/// One call that goes through the events; `Err` when it has ended.
struct Driven<'a> {
    policy: &'a Policy,
    state: RetryState,
    guards: Guards<'a>,
    permit: Permits,
}

impl Driven<'_> {
    fn go(&mut self, event: Event) -> Result<(), Option<StopReason>> {
        let now = || at(secs(1));
        let permit = Permits::take(&mut self.permit);
        let mut retry = RetryMachine::new(self.policy, &mut self.state, Seed::new(1));
        if let Event::Dropped(During::Sleep) = event {
            self.guards.release(permit);
            return Err(None);
        }
        let permit = retry.begin(permit, now, &self.guards)?;
        let outcome = match event {
            Event::Dropped(During::Pause) => {
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
    fn a_permit_is_settled_exactly_once(
        events in prop::collection::vec(event(), 1..30),
        with_budget in prop::bool::weighted(0.9),
        with_breaker in prop::bool::weighted(0.9),
    ) {
        let (budget, breaker) = (RecordingBudget::default(), RecordingBreaker::default());
        let mut guards = Guards::none();
        if with_budget { guards = guards.budget(&budget); }
        if with_breaker { guards = guards.breaker(&breaker); }
        let policy = Policy::constant(ms(10)).max_attempts(12).stable_after(secs(10)).build().unwrap();
        let mut driven = Driven { policy: &policy, state: RetryState::new(), guards, permit: Permits::NONE };
        let mut ended = false;
        for (event, tight, open, refuses) in events {
            budget.set_rejects(tight);
            breaker.set_open(open);
            breaker.set_rejects_from(refuses.then_some(ms(0)));
            // Between attempts one loan is out, which is that of the coming retry, and no pass.
            if let Err(_stop) = driven.go(event) {
                ended = true;
                break;
            }
            prop_assert_eq!((budget.outstanding(), breaker.outstanding()), (usize::from(with_budget), 0));
        }
        if !ended {
            guards.release(Permits::take(&mut driven.permit));
        }
        budget.assert_balanced();
        breaker.assert_balanced();
    }
}

#[test]
fn a_breaker_that_refuses_the_first_attempt_leaves_the_budget_alone() {
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
fn a_breaker_that_refuses_a_granted_retry_gives_the_loan_back() {
    let (budget, breaker, policy) = (RecordingBudget::default(), RecordingBreaker::default(), Policy::DEFAULT);
    let guards = Guards::none().budget(&budget).breaker(&breaker);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::TRANSIENT, permit, now, &guards) else {
        panic!("nothing forbids it")
    };
    breaker.set_open(true);
    assert_eq!(retry.begin(permit, now, &guards), Err(StopReason::Breaker));
    assert_eq!(retry.attempt(), 1, "an attempt that was refused was not made");
    assert_eq!(budget.events(), ["on_first_attempt", "record 1 Ailing", "try_acquire Transient", "release 2"]);
    budget.assert_balanced();
    breaker.assert_balanced();
}

type Way = fn(&Guards<'_>, Permits, fn() -> Instant);

#[test]
fn a_call_dropped_after_its_begin_blames_nobody_and_pays_for_attempts_only() {
    let (now, later) = (|| at(secs(1)), || at(secs(2)));
    let ways: [(Way, &str); 2] = [
        (|guards, permit, now| guards.abandon(permit, now), "record 1 Unknown"),
        (|guards, permit, now| guards.release_begun(permit, now), "release 1"),
    ];
    for (drop, event) in ways {
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
fn a_permit_is_taken_out_of_its_slot_once() {
    let (budget, policy) = (RecordingBudget::default(), Policy::DEFAULT);
    let guards = Guards::none().budget(&budget);
    let mut state = RetryState::new();
    let now = || at(secs(1));
    let mut slot = RetryMachine::new(&policy, &mut state, Seed::new(1)).begin(Permits::NONE, now, &guards).unwrap();
    assert_ne!(slot, Permits::NONE);
    let taken = Permits::take(&mut slot);
    assert_eq!(slot, Permits::NONE);
    guards.abandon(taken, now);
    budget.assert_balanced();
}

/// The defaults of what a budget need not say.
#[test]
fn a_budget_lends_nothing_for_a_first_attempt_and_tells_no_number_unless_it_says_so() {
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
fn an_open_breaker_says_for_how_long() {
    let open = stagger_core::BreakerOpen { retry_in: ms(1_260) };
    assert_eq!(open.to_string(), "this client's own circuit breaker is open for another 1.3s");
}
