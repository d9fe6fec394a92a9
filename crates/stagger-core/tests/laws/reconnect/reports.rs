//! Reports carry a generation, so that one loss schedules one reconnect.

use proptest::prelude::*;
use stagger_core::machine::{ReconnectMachine, ReconnectPhase, ReconnectStep, Unreachable};
use stagger_core::{DelaySource, Jitter, Outcome, Policy, PolicyBuilder, Seed, ServerHint, StopReason, profile};

use super::link::{Link, connects, waits};
use crate::laws::support::{at, cases, ms, secs};

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
    assert_eq!(link.machine.phase(), ReconnectPhase::Open { since: at(link.now) });
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

// A connection that is kept up does not give up by default, but tells.

const PLAIN: PolicyBuilder = Policy::exponential(ms(500), secs(30)).jitter(Jitter::None).unlimited_attempts();

/// Fails attempts, and returns the reports with the numbers of the attempts after which they came.
fn reports(link: &mut Link<'_>, attempts: u32) -> Vec<(u32, Unreachable)> {
    (1..=attempts)
        .filter_map(|attempt| {
            let _ = waits(link.ended(Outcome::TRANSIENT));
            let report = link.machine.take_unreachable_report();
            assert_eq!(link.machine.take_unreachable_report(), None, "reported twice");
            link.retry();
            Some((attempt, report?))
        })
        .collect()
}

/// Ten attempts take two to three minutes, which is less than many restarts.
#[test]
fn the_profile_of_connections_does_not_give_up() {
    let mut link = Link::new(profile::WEB_SOCKET.policy()).up();
    link.advance(secs(60));
    for _ in 0..1_000 {
        let _ = waits(link.ended(Outcome::TRANSIENT));
        link.retry();
    }
    assert_eq!(link.ended(Outcome::Permanent), ReconnectStep::GiveUp(StopReason::Permanent));
}

/// Giving up is longer than any wait, and `reconnect_now` ends both.
#[test]
fn the_profile_of_connections_waits_for_as_long_as_the_server_says() {
    for hint in [secs(301), secs(3_600), secs(86_400)] {
        let hinted = Outcome::throttled(Some(ServerHint::AtLeast(hint)));
        let mut link = Link::new(profile::WEB_SOCKET.policy()).up();
        link.advance(secs(60));
        for _ in 0..3 {
            let (after, source) = waits(link.ended(hinted));
            assert!(hint <= after && after <= hint * 3 / 2 && source == DelaySource::Hint, "{hint:?}: {after:?}");
            link.retry();
        }
        let refused = Outcome::throttled(Some(ServerHint::DoNotRetry));
        assert_eq!(link.ended(refused), ReconnectStep::GiveUp(StopReason::Hint));
    }
}

#[test]
fn an_outage_is_reported_after_ten_failed_attempts_and_when_it_has_lasted_twice_as_long() {
    let mut link = Link::new(PLAIN.build().unwrap()).up();
    link.advance(secs(60));
    let lost = at(link.now);
    // The loss itself is no failed attempt to connect.
    let _ = waits(link.ended(Outcome::TRANSIENT));
    assert_eq!(link.machine.take_unreachable_report(), None);
    link.retry();
    let reports = reports(&mut link, 100);
    // The tenth fails after 0.5 + 1 + 2 + 4 + 8 + 16 + 4 * 30 s, and every further one 30 s later.
    let want = [(10, 151_500), (16, 331_500), (28, 691_500), (52, 1_411_500), (100, 2_851_500)];
    assert_eq!(reports.iter().map(|(attempt, report)| (*attempt, report.lasted.as_millis())).collect::<Vec<_>>(), want);
    assert!(reports.iter().all(|(attempt, report)| (report.since, report.attempts) == (lost, *attempt)));
}

#[test]
fn the_state_says_unreachable_from_the_tenth_failed_attempt_until_a_connection_opens() {
    let mut link = Link::new(PLAIN.build().unwrap());
    let begin = at(link.now);
    let _ = link.reconnect_now();
    for attempt in 1..=12 {
        let _ = waits(link.ended(Outcome::TRANSIENT));
        let state = link.machine.unreachable();
        assert_eq!(state.is_some(), attempt >= 10, "attempt {attempt}");
        assert!(state.is_none_or(|state| (state.since, state.attempts) == (begin, attempt)), "{state:?}");
        link.retry();
    }
    assert!(link.machine.unreachable().is_some());
    let generation = link.machine.generation();
    assert_eq!(link.opened(generation), ReconnectStep::Rest);
    assert_eq!(link.machine.unreachable(), None);
    // The next outage begins anew.
    link.lose_after(secs(60));
    link.retry();
    assert_eq!(reports(&mut link, 10).len(), 1);
}

/// A server that accepts and drops is reachable.
#[test]
fn connections_that_are_lost_at_once_are_not_unreachable() {
    let mut link = Link::new(PLAIN.build().unwrap()).up();
    for _ in 0..50 {
        link.lose_after(ms(0));
        link.reopen();
    }
    assert_eq!((link.machine.unreachable(), link.machine.take_unreachable_report()), (None, None));
}

#[test]
fn reconnect_now_does_not_restart_the_outage() {
    let mut link = Link::new(PLAIN.max_attempts(4).build().unwrap()).up();
    let lost = at(link.now);
    let _ = waits(link.ended(Outcome::TRANSIENT));
    link.retry();
    for _ in 0..3 {
        assert_eq!(link.fail_on().1, StopReason::Attempts);
        let _ = link.reconnect_now();
    }
    // The loss is the end of attempt 1 of 4; then four in each further episode.
    let state = link.machine.unreachable().unwrap();
    assert_eq!((state.since, state.attempts), (lost, 11));
}

/// Attempts that fail without a wait must not report every time.
#[test]
fn reports_are_at_least_a_second_apart() {
    let mut link = Link::new(Policy::zero().unlimited_attempts().build().unwrap());
    let _ = link.reconnect_now();
    assert_eq!(reports(&mut link, 1_000).len(), 1);
    link.advance(secs(1));
    assert_eq!(reports(&mut link, 1_000).len(), 1);
}

#[test]
fn an_immediate_repeat_belongs_to_the_same_attempt() {
    let mut link = Link::new(PLAIN.build().unwrap());
    let _ = link.reconnect_now();
    let _ = waits(link.ended(Outcome::NotProcessed));
    link.retry();
    assert_eq!(reports(&mut link, 10).first().map(|report| report.0), Some(10));
}

/// A limit that was set is kept, and the reason for stopping says so.
#[test]
fn with_max_attempts_it_gives_up_as_before() {
    let mut link = Link::new(PLAIN.max_attempts(10).build().unwrap());
    let _ = link.reconnect_now();
    let (waits, stop) = link.fail_on();
    assert_eq!((waits.len(), stop), (9, StopReason::Attempts));
}
