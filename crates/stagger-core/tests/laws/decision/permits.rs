//! Every permit is settled exactly once, on every path.

use proptest::prelude::*;
use stagger_core::guard::{Permits, ServerHealth};
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{FailureKind, Guard, Guards, Instant, Outcome, Policy, Seed, StopReason};

use crate::laws::support::{RecordingGuard, at, cases, ms, secs};

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
    /// While it waits for its turn, or, if no guard lets it wait, between the turn and `begin`.
    Turn,
    /// Between `begin` and the attempt.
    Begun,
    Attempt,
}

const DROPS: [During; 4] = [During::Sleep, During::Turn, During::Begun, During::Attempt];

/// What the guards do while an event is applied; each acts on one of them.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It has no retry left to reserve.
    Rejects(usize),
    /// It rejects attempts that are about to start.
    Open(usize),
    /// It lets attempts wait, so many times.
    Waits(usize, u32),
    /// It would refuse any attempt.
    WouldRefuse(usize),
}

fn event() -> impl Strategy<Value = (Event, Vec<Fault>)> {
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
        1 => prop::sample::select(&DROPS[..]).prop_map(Event::Dropped),
    ];
    let fault = (0..4_usize, 1..4_u32, 0..5_u8).prop_map(|(guard, times, kind)| match kind {
        0 => Fault::Rejects(guard),
        1 => Fault::Open(guard),
        2 => Fault::WouldRefuse(guard),
        _ => Fault::Waits(guard, times),
    });
    (event, prop::collection::vec(fault, 0..2))
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
        let mut permit = Permits::take(&mut self.permit);
        let mut retry = RetryMachine::new(self.policy, &mut self.state, Seed::new(1));
        if let Event::Dropped(During::Sleep) = event {
            self.guards.release(permit, now);
            return Err(None);
        }
        loop {
            let wait = retry.turn(&mut permit, now, &self.guards)?;
            if let Event::Dropped(During::Turn) = event {
                self.guards.release(permit, now);
                return Err(None);
            }
            if wait.is_zero() {
                break;
            }
        }
        let outcome = match event {
            Event::Dropped(During::Begun) => {
                self.guards.release(permit, now);
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

/// Returns guards of these kinds: those that issue the permits of retries when they are reserved, or when they start.
fn recording(kinds: &[bool]) -> Vec<RecordingGuard> {
    kinds.iter().map(|&reserves| if reserves { RecordingGuard::budget() } else { RecordingGuard::breaker() }).collect()
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn a_permit_is_settled_exactly_once(
        events in prop::collection::vec(event(), 1..30),
        kinds in prop::collection::vec(any::<bool>(), 1..5),
    ) {
        let recording = recording(&kinds);
        let list: Vec<&dyn Guard> = recording.iter().map(|guard| guard as &dyn Guard).collect();
        let guards = Guards::of(&list);
        let policy = Policy::constant(ms(10)).max_attempts(12).stable_after(secs(10)).build().unwrap();
        let mut call = TestCall { policy: &policy, state: RetryState::new(), guards, permit: Permits::NONE };
        let mut ended = false;
        for (event, faults) in events {
            for guard in &recording {
                guard.set_rejects(false);
                guard.set_open(false);
                guard.set_refuses_from(None);
            }
            for fault in faults {
                let of = |n: usize| &recording[n % recording.len()];
                match fault {
                    Fault::Rejects(n) => of(n).set_rejects(true),
                    Fault::Open(n) => of(n).set_open(true),
                    Fault::Waits(n, times) => of(n).set_waits(times),
                    Fault::WouldRefuse(n) => of(n).set_refuses_from(Some(ms(0))),
                }
            }
            if let Err(_stop) = call.apply(event) {
                ended = true;
                break;
            }
            // Before the next attempt, a guard has the permit of the retry if it reserves retries, and all have those
            // of an attempt that repeats.
            let repeats = call.permit != Permits::NONE && recording.iter().all(|guard| guard.outstanding() == 1);
            for (guard, &reserves) in recording.iter().zip(&kinds) {
                prop_assert!(repeats || guard.outstanding() == usize::from(reserves), "{guard:?}");
            }
        }
        if !ended {
            guards.release(Permits::take(&mut call.permit), || at(secs(1)));
        }
        recording.iter().for_each(RecordingGuard::assert_balanced);
    }
}

/// Every position in which a call can be dropped, with one to four guards, and with each of them letting it wait.
#[test]
fn a_call_dropped_anywhere_settles_every_permit_once() {
    let policy = Policy::constant(ms(10)).max_attempts(9).build().unwrap();
    for count in 1..=4 {
        for kinds in 0..1_u32 << count {
            let kinds: Vec<_> = (0..count).map(|n| kinds >> n & 1 == 1).collect();
            for (waiting, during, outcome) in drops(count) {
                let recording = recording(&kinds);
                let list: Vec<&dyn Guard> = recording.iter().map(|guard| guard as &dyn Guard).collect();
                let mut call = TestCall {
                    policy: &policy,
                    state: RetryState::new(),
                    guards: Guards::of(&list),
                    permit: Permits::NONE,
                };
                // The first attempt fails, or is to be repeated, if the call gets so far.
                if let Some(outcome) = outcome {
                    assert_eq!(call.apply(Event::Ends(outcome)), Ok(()));
                }
                if let Some(guard) = waiting {
                    recording[guard].set_waits(1);
                }
                assert_eq!(call.apply(Event::Dropped(during)), Err(None));
                for guard in &recording {
                    guard.assert_balanced();
                    let made = guard.events().iter().filter(|event| event.ends_with("Unknown")).count();
                    assert_eq!(made, usize::from(during == During::Attempt), "{during:?}, {outcome:?}");
                }
            }
        }
    }
}

/// Returns which guard lets the call wait, when the call is dropped, and how its first attempt ended if it is a retry.
fn drops(guards: usize) -> impl Iterator<Item = (Option<usize>, During, Option<Outcome>)> {
    let waiting = (0..guards).map(Some).chain([None]);
    waiting.flat_map(|waiting| {
        DROPS.into_iter().flat_map(move |during| {
            [None, Some(Outcome::TRANSIENT), Some(Outcome::NotProcessed)].map(|outcome| (waiting, during, outcome))
        })
    })
}

#[test]
fn a_breaker_rejecting_the_first_attempt_spares_the_budget() {
    let (budget, breaker, policy) = (RecordingGuard::budget(), RecordingGuard::breaker(), Policy::DEFAULT);
    breaker.set_open(true);
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    let guards = Guards::of(&list);
    let mut state = RetryState::new();
    let got = RetryMachine::new(&policy, &mut state, Seed::new(1)).begin(Permits::NONE, || at(secs(1)), &guards);
    assert_eq!(got, Err(StopReason::BREAKER));
    assert_eq!((budget.events(), state.attempt()), (vec![], 0));
    budget.assert_balanced();
}

#[test]
fn a_breaker_rejecting_a_granted_retry_gives_its_permit_back() {
    let (budget, breaker, policy) = (RecordingGuard::budget(), RecordingGuard::breaker(), Policy::DEFAULT);
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    let guards = Guards::of(&list);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::TRANSIENT, permit, now, &guards) else {
        panic!("the retry is allowed")
    };
    breaker.set_open(true);
    assert_eq!(retry.begin(permit, now, &guards), Err(StopReason::BREAKER));
    assert_eq!(retry.attempt(), 1, "a rejected attempt must not be counted");
    assert_eq!(budget.events(), ["ask first", "made 1 Ailing", "reserve Transient", "never made 2"]);
    budget.assert_balanced();
    breaker.assert_balanced();
}

#[test]
fn a_reservation_that_a_later_guard_refuses_is_given_back() {
    let recording = recording(&[true, true, true, true]);
    let list: Vec<&dyn Guard> = recording.iter().map(|guard| guard as &dyn Guard).collect();
    let (guards, now) = (Guards::of(&list), || at(secs(1)));
    for refusing in 0..4 {
        let mut state = RetryState::new();
        let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1));
        let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
        recording[refusing].set_rejects(true);
        recording.iter().for_each(|guard| drop(guard.events()));
        assert_eq!(retry.decide(Outcome::TRANSIENT, permit, now, &guards), Decision::Stop(StopReason::BUDGET));
        for (n, guard) in recording.iter().enumerate() {
            let events = guard.events();
            let kinds: Vec<_> = events.iter().map(|event| event.split(' ').next().unwrap()).collect();
            let want: &[_] = match n.cmp(&refusing) {
                core::cmp::Ordering::Less => &["made", "reserve", "never"],
                core::cmp::Ordering::Equal => &["made", "reserve"],
                core::cmp::Ordering::Greater => &["made"],
            };
            assert_eq!(kinds, want, "guard {n}, while {refusing} refuses");
            guard.assert_balanced();
        }
        recording[refusing].set_rejects(false);
    }
}

type DropCall = fn(&Guards<'_>, Permits, fn() -> Instant);

#[test]
fn a_dropped_call_is_neutral_and_charged_only_if_attempted() {
    let (now, later) = (|| at(secs(1)), || at(secs(2)));
    let cases: [(DropCall, &str); 2] = [
        (|guards, permit, now| guards.abandon(permit, now), "made 1 Unknown"),
        (|guards, permit, now| guards.release(permit, now), "never made 1"),
    ];
    for (drop, event) in cases {
        let (budget, breaker, policy) = (RecordingGuard::budget(), RecordingGuard::breaker(), Policy::DEFAULT);
        let list: [&dyn Guard; 2] = [&breaker, &budget];
        let guards = Guards::of(&list);
        let permit = RetryMachine::new(&policy, &mut RetryState::new(), Seed::new(1))
            .begin(Permits::NONE, now, &guards)
            .unwrap();
        drop(&guards, permit, later);
        for guard in [&budget, &breaker] {
            assert_eq!(guard.events(), ["ask first", event]);
        }
        assert_eq!(Outcome::Cancelled.verdict(), ServerHealth::Unknown);
    }
}

#[test]
fn taking_permits_leaves_none() {
    let (budget, policy) = (RecordingGuard::budget(), Policy::DEFAULT);
    let list: [&dyn Guard; 1] = [&budget];
    let guards = Guards::of(&list);
    let mut state = RetryState::new();
    let now = || at(secs(1));
    let mut held = RetryMachine::new(&policy, &mut state, Seed::new(1)).begin(Permits::NONE, now, &guards).unwrap();
    assert_ne!(held, Permits::NONE);
    let taken = Permits::take(&mut held);
    assert_eq!(held, Permits::NONE);
    guards.abandon(taken, now);
    budget.assert_balanced();
}
