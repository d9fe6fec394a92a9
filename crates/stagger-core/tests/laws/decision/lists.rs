//! Lists of guards: their order, and guards of a user.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use stagger_core::guard::{Answer, Ask, End, MAX_GUARDS, Now, Permit, Permits};
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{FailureKind, Guard, Guards, Outcome, Policy, Seed, StopReason};

use crate::laws::support::{Call, GuardTrace, RecordingGuard, Start, at, ms, secs};

#[test]
fn guards_are_asked_and_told_in_the_order_given() {
    for names in [["a", "b", "c"], ["c", "a", "b"]] {
        let trace = GuardTrace::default();
        let recording = names.map(|name| {
            let guard = if name == "b" { RecordingGuard::breaker() } else { RecordingGuard::budget() };
            guard.traced(name, &trace)
        });
        let list = recording.each_ref().map(|guard| guard as &dyn Guard);
        let (guards, now, mut state) = (Guards::of(&list), || at(secs(1)), RetryState::new());
        let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1));
        // The second one lets the first attempt wait, and then only it and the third are asked again.
        recording[1].set_waits(1);
        let mut permit = Permits::NONE;
        assert_eq!(retry.turn(&mut permit, now, &guards), Ok(RecordingGuard::WAIT));
        assert_eq!(retry.turn(&mut permit, now, &guards), Ok(Duration::ZERO));
        let Decision::Retry { permit, .. } = retry.decide(Outcome::TRANSIENT, permit, now, &guards) else {
            panic!("the retry is allowed")
        };
        let permit = retry.begin(permit, now, &guards).unwrap();
        assert_eq!(retry.decide(Outcome::Success, permit, now, &guards), Decision::Done);

        let [first, second, third] = names;
        let mut want = vec![format!("{first}: ask first"), format!("{second}: ask first")];
        // Waiting for the second is in vain if the third would then refuse.
        want.push(format!("{third}: would refuse?"));
        want.extend([second, third].map(|name| format!("{name}: ask first")));
        want.extend(names.map(|name| format!("{name}: made 1 Ailing")));
        want.extend(names.map(|name| format!("{name}: would refuse?")));
        want.extend(names.map(|name| format!("{name}: reserve Transient")));
        want.extend(names.map(|name| format!("{name}: ask retry")));
        want.extend(names.map(|name| format!("{name}: made 2 Healthy")));
        assert_eq!(*trace.lock().unwrap(), want);
    }
}

#[test]
fn an_attempt_does_not_wait_for_a_guard_if_a_later_one_would_then_refuse_it() {
    let (first, second, third) = (RecordingGuard::breaker(), RecordingGuard::breaker(), RecordingGuard::budget());
    let list: [&dyn Guard; 3] = [&first, &second, &third];
    let (guards, now, mut state) = (Guards::of(&list), || at(secs(1)), RetryState::new());
    let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1));
    second.set_waits(1);
    third.set_refuses_from(Some(RecordingGuard::WAIT));
    let mut permit = Permits::NONE;
    assert_eq!(retry.turn(&mut permit, now, &guards), Err(StopReason::BUDGET));
    assert_eq!(permit, Permits::NONE);
    assert_eq!(first.events(), ["ask first", "never made 1"]);
    assert_eq!(second.events(), ["ask first", "never made 1"]);
    assert_eq!(third.events(), Vec::<String>::new());
}

#[test]
fn a_driver_that_begins_without_a_turn_takes_a_wait_for_a_rejection() {
    let trace = GuardTrace::default();
    let (first, second) = (RecordingGuard::budget(), RecordingGuard::breaker().traced("bulkhead", &trace));
    let list: [&dyn Guard; 2] = [&first, &second];
    let (guards, now, mut state) = (Guards::of(&list), || at(secs(1)), RetryState::new());
    second.set_waits(1);
    let begun = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1)).begin(Permits::NONE, now, &guards);
    assert_eq!((begun, state.attempt()), (Err(StopReason::Guard("bulkhead")), 0));
    assert_eq!(first.events(), ["ask first", "never made 1"]);
    assert_eq!(second.events(), ["ask first", "never made 1"]);
}

/// At most so many attempts at a time; the others wait. What a user of the library could write.
#[derive(Debug)]
struct Bulkhead {
    in_flight: AtomicU32,
    most: u32,
}

const IN_FLIGHT: Permit = Permit(1);

impl Guard for Bulkhead {
    fn name(&self) -> &'static str {
        "bulkhead"
    }

    fn ask(&self, _: Ask, held: Permit, _: &dyn Now) -> Answer {
        let take = |in_flight| if in_flight < self.most { Some(in_flight + 1) } else { None };
        match self.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Answer::Go(IN_FLIGHT),
            Err(_) => Answer::Wait { after: ms(10), permit: held },
        }
    }

    fn settle(&self, permit: Permit, _: End<'_>, _: &dyn Now) {
        if permit == IN_FLIGHT {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_bulkhead_of_a_user_lets_attempts_wait_while_it_is_full() {
    let bulkhead = Bulkhead { in_flight: AtomicU32::new(0), most: 2 };
    let in_flight = || bulkhead.in_flight.load(Ordering::Relaxed);
    let list: [&dyn Guard; 1] = [&bulkhead];
    let (guards, now, policy) = (Guards::of(&list), || at(secs(1)), Policy::DEFAULT);
    let mut states = [RetryState::new(); 3];
    let [mut one, mut two, mut three] = states.each_mut().map(|state| RetryMachine::new(&policy, state, Seed::new(1)));
    let [mut first, mut second, mut third] = [const { Permits::NONE }; 3];
    let (starts, waits) = (Ok(Duration::ZERO), Ok(ms(10)));
    assert_eq!(one.turn(&mut first, now, &guards), starts);
    assert_eq!(two.turn(&mut second, now, &guards), starts);
    assert_eq!(in_flight(), 2);
    for _ in 0..3 {
        assert_eq!(three.turn(&mut third, now, &guards), waits);
    }

    // An attempt that ends makes room, and its call holds none while it sleeps.
    let Decision::Retry { permit: mut first, .. } = one.decide(Outcome::TRANSIENT, first, now, &guards) else {
        panic!("the retry is allowed")
    };
    assert_eq!(three.turn(&mut third, now, &guards), starts);
    assert_eq!((in_flight(), three.attempt()), (2, 1));
    assert_eq!(one.turn(&mut first, now, &guards), waits);

    // So does one that is dropped.
    guards.abandon(second, now);
    assert_eq!(one.turn(&mut first, now, &guards), starts);
    assert_eq!(one.decide(Outcome::Success, first, now, &guards), Decision::Done);
    assert_eq!(three.decide(Outcome::Success, third, now, &guards), Decision::Done);
    assert_eq!(in_flight(), 0);
}

/// The default methods of `Guard`.
#[test]
fn a_guard_lets_every_attempt_start_and_grants_every_retry_by_default() {
    #[derive(Debug)]
    struct Plain;
    impl Guard for Plain {
        fn name(&self) -> &'static str {
            "plain"
        }
        fn settle(&self, _: Permit, _: End<'_>, _: &dyn Now) {}
    }
    let (plain, now): (&dyn Guard, _) = (&Plain, at(secs(1)));
    assert_eq!(plain.start(&now), Permit::NONE);
    assert_eq!(plain.ask(Ask::FIRST, Permit(7), &now), Answer::Go(Permit(7)));
    assert_eq!(plain.reserve(FailureKind::Transient, &now), Some(Permit::NONE));
    assert!(!plain.would_refuse(secs(1), None, &now) && plain.retry_in(&now).is_zero());
    assert_eq!(plain.available(), None);
    assert!(!plain.bounds_retries() && !plain.is_at_rest(&now) && plain.needs_every_call());
}

#[test]
fn a_call_with_more_guards_than_have_a_place_makes_no_attempt() {
    let guard = RecordingGuard::breaker();
    let list: [&dyn Guard; MAX_GUARDS + 1] = [&guard; MAX_GUARDS + 1];
    let trace = Call::new(&Policy::DEFAULT).guards(&list).run([Outcome::Success]);
    assert_eq!((trace.runs, trace.stop), (0, Some(StopReason::TOO_MANY_GUARDS)));
    let trace = Call::new(&Policy::DEFAULT).guards(&list[1..]).run([Outcome::Success]);
    assert_eq!((trace.runs, trace.stop), (1, None));
}
