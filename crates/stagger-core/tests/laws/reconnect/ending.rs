//! Giving up, reconnecting on request, closing.

use core::time::Duration;

use stagger_core::machine::{ReconnectPhase, ReconnectStep};
use stagger_core::{Jitter, Outcome, Policy, PolicyBuilder, ServerHint, StopReason};

use super::link::{Link, connects, waits};
use crate::laws::support::{at, ms, secs};

const PLAIN: PolicyBuilder = Policy::exponential(ms(500), secs(30)).jitter(Jitter::None).max_attempts(3);

#[test]
fn giving_up_reports_its_reason() {
    let never = Outcome::throttled(Some(ServerHint::DoNotRetry));
    for (outcome, want) in [
        (Outcome::Permanent, StopReason::Permanent),
        (Outcome::Cancelled, StopReason::Cancelled),
        (never, StopReason::Hint),
    ] {
        // While connecting, and after having been open.
        let mut link = Link::new(PLAIN.build().unwrap());
        let _ = link.reconnect_now();
        assert_eq!(link.ended(outcome), ReconnectStep::GiveUp(want));
        assert_eq!(link.machine.phase(), ReconnectPhase::GivenUp(want));

        let mut link = Link::new(PLAIN.build().unwrap()).up();
        link.advance(secs(60));
        assert_eq!(link.ended(outcome), ReconnectStep::GiveUp(want));
        assert_eq!(link.machine.phase(), ReconnectPhase::GivenUp(want));
    }
    let mut link = Link::new(Policy::stop().build().unwrap()).up();
    link.advance(secs(60));
    assert_eq!(link.ended(Outcome::TRANSIENT), ReconnectStep::GiveUp(StopReason::Exhausted));
}

#[test]
fn after_giving_up_reports_are_stale_and_nothing_is_due() {
    let mut link = Link::new(PLAIN.build().unwrap());
    let _ = link.reconnect_now();
    let _ = link.ended(Outcome::Permanent);
    assert_eq!(link.ended(Outcome::TRANSIENT), ReconnectStep::Stale);
    assert_eq!(link.opened(link.machine.generation()), ReconnectStep::Stale);
    link.advance(secs(1000));
    assert_eq!(link.due(), ReconnectStep::Rest);
}

#[test]
fn reconnect_now_restarts_from_every_phase() {
    type Reach = fn(&mut Link<'_>);
    let phases: [(&str, Reach); 5] = [
        ("idle", |_| {}),
        ("connecting", |link| {
            let _ = link.reconnect_now();
        }),
        ("open", |link| {
            let generation = connects(link.reconnect_now());
            let _ = link.opened(generation);
        }),
        ("waiting", |link| {
            let _ = link.reconnect_now();
            let _ = link.ended(Outcome::TRANSIENT);
            link.retry();
            let _ = waits(link.ended(Outcome::TRANSIENT));
        }),
        ("given up", |link| {
            let _ = link.reconnect_now();
            let _ = link.fail_on();
        }),
    ];
    for (name, reach) in phases {
        let mut link = Link::new(PLAIN.build().unwrap());
        reach(&mut link);
        let before = link.machine.generation();
        let generation = connects(link.reconnect_now());
        assert_eq!(generation.get(), before.get() + 1, "{name}");
        assert_eq!((link.machine.phase(), link.machine.attempt()), (ReconnectPhase::Connecting, 1), "{name}");
        // Attempts and schedule are reset.
        assert_eq!(link.fail_on(), ([500, 1000].map(ms).to_vec(), StopReason::Attempts), "{name}");
    }
}

#[test]
fn reconnect_now_restarts_max_elapsed() {
    let mut link = Link::new(PLAIN.unlimited_attempts().max_elapsed(secs(5)).build().unwrap());
    let _ = link.reconnect_now();
    let (first, stop) = link.fail_on();
    assert_eq!((&first[..], stop), (&[500, 1000, 2000].map(ms)[..], StopReason::Elapsed));
    link.advance(secs(3600));
    let _ = link.reconnect_now();
    assert_eq!(link.fail_on(), (first, StopReason::Elapsed));
}

#[test]
fn a_loss_restarts_max_elapsed() {
    let mut link = Link::new(PLAIN.unlimited_attempts().max_elapsed(secs(5)).build().unwrap()).up();
    assert_eq!(link.lose_after(secs(3600)), ms(500));
    link.retry();
    assert_eq!(link.fail_on(), ([1000, 2000].map(ms).to_vec(), StopReason::Elapsed));
}

#[test]
fn the_spread_after_a_loss_counts_toward_max_elapsed() {
    let policy = Policy::constant(secs(1)).jitter(Jitter::None).spread(secs(10)).max_elapsed(secs(10));
    for seed in 0..20 {
        let mut link = Link::new(policy.unlimited_attempts().build().unwrap()).seed(seed).up();
        let spread = link.lose_after(secs(3600));
        link.retry();
        let (retries, stop) = link.fail_on();
        assert_eq!((retries.len() as u64, stop), ((secs(10) - spread).as_secs(), StopReason::Elapsed), "{spread:?}");
    }
}

#[test]
fn closing_is_final() {
    let mut link = Link::new(PLAIN.build().unwrap()).up();
    let generation = link.machine.generation();
    link.close();
    assert_eq!(link.machine.phase(), ReconnectPhase::Closed);
    assert_eq!(link.ended(Outcome::TRANSIENT), ReconnectStep::Stale);
    assert_eq!(link.opened(generation), ReconnectStep::Stale);
    assert_eq!(link.reconnect_now(), ReconnectStep::Rest);
    assert_eq!(link.due(), ReconnectStep::Rest);
    assert_eq!((link.machine.phase(), link.machine.generation()), (ReconnectPhase::Closed, generation));
}

#[test]
fn a_wait_is_never_due_after_close() {
    let mut link = Link::new(PLAIN.build().unwrap());
    let _ = link.reconnect_now();
    let _ = waits(link.ended(Outcome::TRANSIENT));
    link.close();
    link.advance(secs(3600));
    assert_eq!(link.due(), ReconnectStep::Rest);
}

#[test]
fn the_open_phase_holds_the_time_of_opening() {
    let mut link = Link::new(PLAIN.build().unwrap());
    let generation = connects(link.reconnect_now());
    link.advance(secs(3));
    assert_eq!(link.opened(generation), ReconnectStep::Rest);
    assert_eq!(link.machine.phase(), ReconnectPhase::Open { since: at(link.now) });
    link.advance(Duration::ZERO);
}
