//! Reports carry a generation, so that one loss schedules one reconnect.

use proptest::prelude::*;
use stagger_core::machine::{ReconnectMachine, ReconnectPhase, ReconnectStep};
use stagger_core::{Outcome, Policy, Seed};

use super::link::{Link, connects};
use crate::laws::support::{cases, secs};

#[test]
fn an_error_and_a_close_of_one_loss_schedule_one_reconnect() {
    let mut link = Link::new(Policy::DEFAULT).up();
    link.advance(secs(60));
    let wait = link.ended(Outcome::TRANSIENT);
    assert!(matches!(wait, ReconnectStep::Wait { .. }), "{wait:?}");
    let phase = link.machine.phase();
    for outcome in [Outcome::TRANSIENT, Outcome::Success, Outcome::Permanent, Outcome::Cancelled] {
        assert_eq!(link.ended(outcome), ReconnectStep::Stale);
    }
    assert_eq!(link.machine.phase(), phase);
}

#[test]
fn a_late_report_about_an_earlier_generation_is_stale() {
    let mut link = Link::new(Policy::DEFAULT).up();
    let old = link.machine.generation();
    let new = connects(link.reconnect_now());
    assert!(new > old);
    assert_eq!(link.ended_as(old, Outcome::Permanent), ReconnectStep::Stale);
    assert_eq!(link.opened(old), ReconnectStep::Stale);
    assert_eq!(link.machine.phase(), ReconnectPhase::Connecting);
    assert_eq!(link.opened(new), ReconnectStep::Rest);
    assert_eq!(link.ended_as(old, Outcome::TRANSIENT), ReconnectStep::Stale);
    assert_eq!(link.machine.phase(), ReconnectPhase::Open { since: crate::laws::support::at(link.now) });
}

#[test]
fn a_second_open_report_is_stale() {
    let mut link = Link::new(Policy::DEFAULT).up();
    let generation = link.machine.generation();
    let phase = link.machine.phase();
    link.advance(secs(5));
    assert_eq!(link.opened(generation), ReconnectStep::Stale);
    assert_eq!(link.machine.phase(), phase, "the uptime must not restart");
}

#[test]
fn reports_before_the_first_connect_are_stale() {
    let mut link = Link::new(Policy::DEFAULT);
    let generation = link.machine.generation();
    assert_eq!(link.opened(generation), ReconnectStep::Stale);
    assert_eq!(link.ended(Outcome::TRANSIENT), ReconnectStep::Stale);
    assert_eq!(link.due(), ReconnectStep::Rest);
}

#[test]
fn due_has_no_effect_outside_of_a_wait() {
    let mut link = Link::new(Policy::DEFAULT);
    let _ = link.reconnect_now();
    assert_eq!(link.due(), ReconnectStep::Rest);
    let generation = link.machine.generation();
    let _ = link.opened(generation);
    link.advance(secs(100));
    assert_eq!(link.due(), ReconnectStep::Rest);
}

proptest! {
    #![proptest_config(cases(256))]

    /// In any order of events, a generation connects once and ends once, and generations increase by one.
    #[test]
    fn every_generation_begins_and_ends_once(
        events in prop::collection::vec((0..6_u8, 0..3_u64, 0..20_u64), 0..80),
    ) {
        let mut link = Link::new(Policy::DEFAULT.to_builder().max_attempts(5).build().unwrap());
        let mut generations = Vec::new();
        let (mut connected, mut scheduled) = (0, 0);
        for (event, back, passed) in events {
            link.advance(secs(passed));
            let current = link.machine.generation();
            let about = generations.iter().rev().nth(back as usize).copied().unwrap_or(current);
            let step = match event {
                0 => link.reconnect_now(),
                1 | 2 => link.due(),
                3 => link.opened(about),
                _ => link.ended_as(about, Outcome::TRANSIENT),
            };
            match step {
                ReconnectStep::Connect { generation } => {
                    connected += 1;
                    prop_assert_eq!(generation.get(), connected);
                    generations.push(generation);
                }
                ReconnectStep::Wait { .. } | ReconnectStep::GiveUp(_) if event > 3 => {
                    prop_assert_eq!(about, current, "a report about an earlier connection scheduled a wait");
                    scheduled += 1;
                }
                _ => {}
            }
            prop_assert!(scheduled <= connected);
        }
    }
}

#[test]
fn links_with_different_seeds_wait_differently() {
    let waits: Vec<_> = (0..20)
        .map(|seed| {
            let mut link = Link::new(Policy::DEFAULT).up();
            link.machine = ReconnectMachine::new(Seed::new(seed));
            let _ = link.reconnect_now();
            match link.ended(Outcome::TRANSIENT) {
                ReconnectStep::Wait { after, .. } => after,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    let distinct: std::collections::HashSet<_> = waits.iter().collect();
    assert_eq!(distinct.len(), waits.len());
}
