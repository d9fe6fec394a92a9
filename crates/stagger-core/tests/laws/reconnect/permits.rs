//! Every permit of a link is settled exactly once.

use proptest::prelude::*;
use stagger_core::machine::{ReconnectPhase, ReconnectStep};
use stagger_core::{DelaySource, FailureKind, Guard, Guards, Outcome, Policy, StopReason};

use super::link::{Link, connects, waits};
use crate::laws::support::{RecordingGuard, cases, ms, secs};

fn policy() -> Policy {
    Policy::constant(secs(1)).max_attempts(4).build().unwrap()
}

#[test]
fn opening_records_permits_and_a_loss_acquires_the_next() {
    let (budget, breaker) = (RecordingGuard::budget(), RecordingGuard::breaker());
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    let mut link = Link::guarded(policy(), Guards::of(&list)).up();
    assert_eq!(budget.events(), ["ask first", "made 1 Healthy"]);
    assert_eq!((breaker.records(), breaker.outstanding()), (vec![(1, Outcome::Success)], 0));
    link.lose_after(secs(60));
    assert_eq!(budget.events(), ["reserve Transient"]);
    let generation = link.retry();
    let _ = link.opened(generation);
    assert_eq!(budget.events(), ["ask retry", "made 2 Healthy"]);
    budget.assert_balanced();
    breaker.assert_balanced();
}

#[test]
fn a_budget_rejecting_the_reconnect_gives_up() {
    let budget = RecordingGuard::budget().rejecting();
    let list: [&dyn Guard; 1] = [&budget];
    let mut link = Link::guarded(policy(), Guards::of(&list)).up();
    link.advance(secs(60));
    assert_eq!(link.ended(Outcome::TRANSIENT), ReconnectStep::GiveUp(StopReason::BUDGET));
    budget.assert_balanced();
}

#[test]
fn a_breaker_rejecting_the_connect_gives_up_and_releases() {
    let (budget, breaker) = (RecordingGuard::budget(), RecordingGuard::breaker());
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    let mut link = Link::guarded(policy(), Guards::of(&list)).up();
    link.lose_after(secs(60));
    breaker.set_open(true);
    link.advance(secs(5));
    assert_eq!(link.due(), ReconnectStep::GiveUp(StopReason::BREAKER));
    assert_eq!(link.machine.phase(), ReconnectPhase::GivenUp(StopReason::BREAKER));
    budget.assert_balanced();
    breaker.set_open(false);
    assert_eq!(connects(link.reconnect_now()).get(), 2);
}

#[test]
fn interrupted_attempts_are_recorded_and_waits_released() {
    for close in [true, false] {
        let interrupt = |link: &mut Link<'_>| {
            if close {
                link.close();
            } else {
                let _ = link.reconnect_now();
            }
        };
        let after =
            |events: Vec<String>| events.into_iter().take_while(|event| event != "ask first").collect::<Vec<_>>();
        let (budget, breaker) = (RecordingGuard::budget(), RecordingGuard::breaker());
        let list: [&dyn Guard; 2] = [&breaker, &budget];
        let guards = Guards::of(&list);

        // An attempt was in flight, so its outcome is unknown.
        let mut link = Link::guarded(policy(), guards);
        let _ = link.reconnect_now();
        let _ = budget.events();
        interrupt(&mut link);
        assert_eq!(after(budget.events()), ["made 1 Unknown"]);
        assert_eq!(breaker.records(), [(1, Outcome::Cancelled)]);
        link.close();
        budget.assert_balanced();

        // A permit was granted, but the attempt was not made.
        let budget = RecordingGuard::budget();
        let list: [&dyn Guard; 1] = [&budget];
        let mut link = Link::guarded(policy(), Guards::of(&list)).up();
        link.lose_after(secs(60));
        let _ = budget.events();
        interrupt(&mut link);
        assert_eq!(after(budget.events()), ["never made 2"]);
        link.close();
        budget.assert_balanced();
    }
}

#[test]
fn an_open_connection_holds_no_permits() {
    let (budget, breaker) = (RecordingGuard::budget(), RecordingGuard::breaker());
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    let mut link = Link::guarded(policy(), Guards::of(&list)).up();
    let _ = (budget.events(), breaker.records());
    link.close();
    assert_eq!((budget.events(), breaker.records()), (vec![], vec![]));
}

#[test]
fn local_exhaustion_is_recorded_as_unknown_health() {
    let budget = RecordingGuard::budget();
    let list: [&dyn Guard; 1] = [&budget];
    let mut link = Link::guarded(policy(), Guards::of(&list));
    let _ = link.reconnect_now();
    let _ = waits(link.ended(Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }));
    assert_eq!(budget.events(), ["ask first", "made 1 Unknown", "reserve LocalExhaustion"]);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn permits_of_a_link_are_settled_once(
        events in prop::collection::vec((0..9_u8, 0..20_000_u64, any::<u8>()), 0..60),
    ) {
        let (budget, breaker) = (RecordingGuard::budget(), RecordingGuard::breaker());
        let policy = policy().to_builder().spread(ms(500)).build().unwrap();
        let list: [&dyn Guard; 2] = [&breaker, &budget];
        let mut link = Link::guarded(policy, Guards::of(&list));
        let mut repeats = false;
        for (event, passed, selector) in events {
            budget.set_rejects(selector < 20);
            breaker.set_open((20..40).contains(&selector));
            breaker.set_refuses_from((40..60).contains(&selector).then_some(ms(0)));
            link.advance(ms(passed));
            let generation = link.machine.generation();
            let step = match event {
                0 => link.reconnect_now(),
                1..=3 => link.due(),
                4 | 5 => link.opened(generation),
                6 => link.ended(Outcome::NotProcessed),
                _ => link.ended(Outcome::TRANSIENT),
            };
            if let ReconnectStep::Wait { source, .. } = step {
                repeats = source == DelaySource::Transparent;
            }
            let want = match link.machine.phase() {
                ReconnectPhase::Waiting { .. } => (1, usize::from(repeats)),
                ReconnectPhase::Connecting => (1, 1),
                _ => (0, 0),
            };
            prop_assert_eq!((budget.outstanding(), breaker.outstanding()), want, "{:?}", link.machine);
            prop_assert_eq!((budget.problems(), breaker.problems()), (vec![], vec![]));
        }
        link.close();
        budget.assert_balanced();
        breaker.assert_balanced();
    }
}
