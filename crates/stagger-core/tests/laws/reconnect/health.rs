//! The backoff is reset by a healthy connection, not by connecting.

use core::time::Duration;

use stagger_core::machine::ReconnectStep;
use stagger_core::{Jitter, Outcome, Policy, PolicyBuilder, StopReason};

use super::link::Link;
use crate::laws::support::{ms, secs};

const PLAIN: PolicyBuilder = Policy::exponential(ms(500), secs(30)).jitter(Jitter::None).unlimited_attempts();

/// Returns the waits of a link whose `k`-th connection opens at once and stays up for `uptimes[k]`.
fn flap(policy: PolicyBuilder, uptimes: &[Duration]) -> Vec<Duration> {
    let mut link = Link::new(policy.build().unwrap()).up();
    uptimes
        .iter()
        .map(|&uptime| {
            let wait = link.lose_after(uptime);
            link.reopen();
            wait
        })
        .collect()
}

#[test]
fn the_backoff_resets_after_stable_after_and_not_before() {
    let (short, long) = (secs(20) - Duration::from_nanos(1), secs(20));
    let want = [500, 1000, 2000, 500, 1000].map(ms);
    assert_eq!(flap(PLAIN.stable_after(secs(20)), &[short, short, short, long, short]), want);
}

/// A server that accepts and then drops connections must not cause a hot loop.
#[test]
fn flapping_backs_off_like_failed_connects() {
    let waits = flap(PLAIN, &[Duration::ZERO; 9]);
    assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000].map(ms));
}

/// The default of `stable_after` is `max(10 s, last wait)`.
#[test]
fn default_stable_after_is_10_s_or_the_longer_last_wait() {
    let nano = Duration::from_nanos(1);
    assert_eq!(flap(PLAIN, &[secs(10) - nano, secs(10) - nano, secs(10)]), [500, 1000, 500].map(ms));
    // After a wait of 16 s, an uptime of 10 s is not enough.
    let uptimes = [ms(0), ms(0), ms(0), ms(0), ms(0), ms(0), secs(16) - nano];
    assert_eq!(flap(PLAIN, &uptimes)[5..], [16_000, 30_000].map(ms));
    let uptimes = [ms(0), ms(0), ms(0), ms(0), ms(0), ms(0), secs(16)];
    assert_eq!(flap(PLAIN, &uptimes)[5..], [16_000, 500].map(ms));
}

#[test]
fn a_configured_stable_after_may_be_below_the_last_wait() {
    let uptimes = [ms(0), ms(0), ms(0), ms(0), ms(0), ms(0), secs(1)];
    assert_eq!(flap(PLAIN.stable_after(secs(1)), &uptimes)[5..], [16_000, 500].map(ms));
}

#[test]
fn stable_after_zero_resets_as_soon_as_open() {
    assert_eq!(flap(PLAIN.stable_after(Duration::ZERO), &[Duration::ZERO; 5]), [ms(500); 5]);
}

/// The time spent connecting does not count.
#[test]
fn uptime_begins_when_the_connection_opens() {
    let mut link = Link::new(PLAIN.stable_after(secs(20)).build().unwrap()).up();
    assert_eq!(link.lose_after(secs(20)), ms(500));
    let generation = link.retry();
    link.advance(secs(60));
    assert_eq!(link.opened(generation), ReconnectStep::Rest);
    assert_eq!(link.lose_after(secs(19)), secs(1));
}

#[test]
fn flapping_uses_up_attempts_and_health_restores_them() {
    let policy = PLAIN.max_attempts(3).stable_after(secs(20)).build().unwrap();
    let mut link = Link::new(policy).up();
    for _ in 0..20 {
        link.lose_after(secs(20));
        link.reopen();
    }
    // The last healthy loss was the first of the three.
    assert_eq!(link.machine.attempt(), 1);
    assert_eq!(link.lose_after(Duration::ZERO), secs(1));
    link.reopen();
    link.advance(Duration::ZERO);
    assert_eq!(link.ended(Outcome::TRANSIENT), ReconnectStep::GiveUp(StopReason::Attempts));
}
