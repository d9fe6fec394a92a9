//! Reset by health, not by connection.

use core::time::Duration;

use stagger_core::{Jitter, Outcome, Policy, PolicyBuilder, StopReason, machine::ReconnectStep};

use super::link::{Link, waits};
use crate::laws::support::{ms, secs};

const PLAIN: PolicyBuilder = Policy::exponential(ms(500), secs(30)).jitter(Jitter::None).unlimited_attempts();

/// The waits of a link whose `k`-th connection opens at once and lives `lives[k]`.
fn flap(policy: PolicyBuilder, lives: &[Duration]) -> Vec<Duration> {
    let mut link = Link::new(policy.build().unwrap()).up();
    lives
        .iter()
        .map(|&lived| {
            let wait = link.lose_after(lived);
            link.reopen();
            wait
        })
        .collect()
}

#[test]
fn the_backoff_starts_again_after_a_life_of_stable_after_and_not_after_a_shorter_one() {
    let (short, long) = (secs(20) - Duration::from_nanos(1), secs(20));
    let want = [500, 1000, 2000, 500, 1000].map(ms);
    assert_eq!(flap(PLAIN.stable_after(secs(20)), &[short, short, short, long, short]), want);
}

/// A server that accepts and then drops must not be met by a hot loop.
#[test]
fn flapping_backs_off_like_failing() {
    let waits = flap(PLAIN, &[Duration::ZERO; 9]);
    assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000].map(ms));
}

/// `max(10 s, last wait)`, unless it is set.
#[test]
fn by_default_health_is_ten_seconds_or_the_last_wait_if_that_was_longer() {
    let nano = Duration::from_nanos(1);
    assert_eq!(flap(PLAIN, &[secs(10) - nano, secs(10) - nano, secs(10)]), [500, 1000, 500].map(ms));
    // After a wait of 16 s, ten are not enough.
    let lives = [ms(0), ms(0), ms(0), ms(0), ms(0), ms(0), secs(16) - nano];
    assert_eq!(flap(PLAIN, &lives)[5..], [16_000, 30_000].map(ms));
    let lives = [ms(0), ms(0), ms(0), ms(0), ms(0), ms(0), secs(16)];
    assert_eq!(flap(PLAIN, &lives)[5..], [16_000, 500].map(ms));
}

#[test]
fn a_life_that_is_told_is_taken_at_its_word_even_when_the_last_wait_was_longer() {
    let lives = [ms(0), ms(0), ms(0), ms(0), ms(0), ms(0), secs(1)];
    assert_eq!(flap(PLAIN.stable_after(secs(1)), &lives)[5..], [16_000, 500].map(ms));
}

#[test]
fn zero_starts_again_as_soon_as_a_connection_is_open() {
    assert_eq!(flap(PLAIN.stable_after(Duration::ZERO), &[Duration::ZERO; 5]), [ms(500); 5]);
}

/// Connecting is not living: the time before it was open does not count.
#[test]
fn a_life_begins_when_the_connection_is_open() {
    let mut link = Link::new(PLAIN.stable_after(secs(20)).build().unwrap()).up();
    assert_eq!(link.lose_after(secs(20)), ms(500));
    let generation = link.retry();
    link.pass(secs(60));
    assert_eq!(link.opened(generation), ReconnectStep::Rest);
    assert_eq!(link.lose_after(secs(19)), secs(1));
}

#[test]
fn a_flapping_connection_spends_its_attempts_and_a_healthy_one_gets_them_back() {
    let policy = PLAIN.max_attempts(3).stable_after(secs(20)).build().unwrap();
    let mut link = Link::new(policy).up();
    for _ in 0..20 {
        link.lose_after(secs(20));
        link.reopen();
    }
    for (attempt, wait) in [(1, 1000), (2, 2000)] {
        assert_eq!(link.machine.attempt(), attempt);
        assert_eq!(link.lose_after(Duration::ZERO), ms(wait));
        link.reopen();
    }
    link.pass(Duration::ZERO);
    assert_eq!(link.ended(Outcome::TRANSIENT), ReconnectStep::GiveUp(StopReason::Attempts));
}

/// The spread is for a fleet that lost its server; a connection that flaps is in the backoff already.
#[test]
fn flapping_is_not_spread() {
    let mut link = Link::new(PLAIN.spread(secs(10)).build().unwrap()).up();
    link.pass(secs(1));
    assert_eq!(waits(link.ended(Outcome::TRANSIENT)), (ms(500), stagger_core::DelaySource::Schedule));
}
