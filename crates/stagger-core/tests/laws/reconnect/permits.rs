//! Every permit of a link is recorded or released exactly once.

use proptest::prelude::*;
use stagger_core::{FailureKind, Guards, Outcome, Policy, StopReason, machine::ReconnectPhase, machine::ReconnectStep};

use super::link::{Link, connects, waits};
use crate::laws::support::{Purse, Watch, cases, ms, secs};

fn policy() -> Policy {
    Policy::constant(secs(1)).max_attempts(4).build().unwrap()
}

#[test]
fn opening_records_permits_and_a_loss_acquires_the_next() {
    let (purse, watch) = (Purse::default(), Watch::default());
    let mut link = Link::guarded(policy(), Guards::none().budget(&purse).breaker(&watch)).up();
    assert_eq!(purse.events(), ["first", "settle 1 Healthy"]);
    assert_eq!((watch.records(), watch.out()), (vec![(1, Outcome::Success)], 0));
    link.lose_after(secs(60));
    assert_eq!(purse.events(), ["lend Transient"]);
    let generation = link.retry();
    let _ = link.opened(generation);
    assert_eq!(purse.events(), ["settle 2 Healthy"]);
    purse.assert_balanced();
    watch.assert_balanced();
}

#[test]
fn a_budget_rejecting_the_reconnect_gives_up() {
    let purse = Purse::tight();
    let mut link = Link::guarded(policy(), Guards::none().budget(&purse)).up();
    link.pass(secs(60));
    assert_eq!(link.ended(Outcome::TRANSIENT), ReconnectStep::GiveUp(StopReason::Budget));
    purse.assert_balanced();
}

#[test]
fn a_breaker_rejecting_the_connect_gives_up_and_releases() {
    let (purse, watch) = (Purse::default(), Watch::default());
    let mut link = Link::guarded(policy(), Guards::none().budget(&purse).breaker(&watch)).up();
    link.lose_after(secs(60));
    watch.set_open(true);
    link.pass(secs(5));
    assert_eq!(link.due(), ReconnectStep::GiveUp(StopReason::Breaker));
    assert_eq!(link.machine.phase(), ReconnectPhase::GivenUp(StopReason::Breaker));
    purse.assert_balanced();
    watch.set_open(false);
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
        let after = |events: Vec<String>| events.into_iter().take_while(|event| event != "first").collect::<Vec<_>>();
        let (purse, watch) = (Purse::default(), Watch::default());
        let guards = Guards::none().budget(&purse).breaker(&watch);

        // An attempt was in flight, so its outcome is unknown.
        let mut link = Link::guarded(policy(), guards);
        let _ = link.reconnect_now();
        let _ = purse.events();
        interrupt(&mut link);
        assert_eq!(after(purse.events()), ["settle 1 Unknown"]);
        assert_eq!(watch.records(), [(1, Outcome::Cancelled)]);
        link.close();
        purse.assert_balanced();

        // A permit was granted, but the attempt was not made.
        let purse = Purse::default();
        let mut link = Link::guarded(policy(), Guards::none().budget(&purse)).up();
        link.lose_after(secs(60));
        let _ = purse.events();
        interrupt(&mut link);
        assert_eq!(after(purse.events()), ["give back 2"]);
        link.close();
        purse.assert_balanced();
    }
}

#[test]
fn an_open_connection_holds_no_permits() {
    let (purse, watch) = (Purse::default(), Watch::default());
    let mut link = Link::guarded(policy(), Guards::none().budget(&purse).breaker(&watch)).up();
    let _ = (purse.events(), watch.records());
    link.close();
    assert_eq!((purse.events(), watch.records()), (vec![], vec![]));
}

#[test]
fn local_exhaustion_is_recorded_as_unknown_health() {
    let purse = Purse::default();
    let mut link = Link::guarded(policy(), Guards::none().budget(&purse));
    let _ = link.reconnect_now();
    let _ = waits(link.ended(Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }));
    assert_eq!(purse.events(), ["first", "settle 1 Unknown", "lend LocalExhaustion"]);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn permits_of_a_link_are_recorded_or_released_once(
        events in prop::collection::vec((0..9_u8, 0..20_000_u64, any::<u8>()), 0..60),
    ) {
        let (purse, watch) = (Purse::default(), Watch::default());
        let policy = policy().to_builder().spread(ms(500)).build().unwrap();
        let mut link = Link::guarded(policy, Guards::none().budget(&purse).breaker(&watch));
        for (event, passed, selector) in events {
            purse.set_tight(selector < 20);
            watch.set_open((20..40).contains(&selector));
            watch.set_refuses_from((40..60).contains(&selector).then_some(ms(0)));
            link.pass(ms(passed));
            let generation = link.machine.generation();
            match event {
                0 => { let _ = link.reconnect_now(); }
                1..=3 => { let _ = link.due(); }
                4 | 5 => { let _ = link.opened(generation); }
                6 => { let _ = link.ended(Outcome::NotProcessed); }
                _ => { let _ = link.ended(Outcome::TRANSIENT); }
            }
            let want = match link.machine.phase() {
                ReconnectPhase::Waiting { .. } => (1, 0),
                ReconnectPhase::Connecting => (1, 1),
                _ => (0, 0),
            };
            prop_assert_eq!((purse.out(), watch.out()), want, "{:?}", link.machine);
            prop_assert_eq!((purse.faults(), watch.faults()), (vec![], vec![]));
        }
        link.close();
        purse.assert_balanced();
        watch.assert_balanced();
    }
}
