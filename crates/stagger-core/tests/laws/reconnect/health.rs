//! The backoff is reset by a healthy connection, not by connecting.

use core::time::Duration;

use stagger_core::machine::ReconnectStep;
use stagger_core::{
    DelaySource, FailureKind, HintMode, Jitter, Outcome, Policy, PolicyBuilder, ServerHint, StopReason, profile,
};

use super::link::{Link, waits};
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

// Every loss of an open connection is spread; `stable_after` decides only whether the count starts again.

/// Returns the wait after the first loss of a connection that was open for `uptime`, for each seed.
fn fleet(policy: &Policy, uptime: Duration, clients: u64) -> Vec<Duration> {
    (0..clients).map(|seed| Link::new(*policy).seed(seed).up().lose_after(uptime)).collect()
}

/// Returns how many waits end in the busiest 100 ms.
fn busiest(waits: &[Duration]) -> usize {
    let mut counts = std::collections::BTreeMap::new();
    for wait in waits {
        *counts.entry(wait.as_millis() / 100).or_insert(0) += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

/// A server that dies again soon after its restart must not meet all clients at once.
#[test]
fn a_crash_loop_does_not_bring_the_fleet_back_within_the_base() {
    let policy = profile::WEB_SOCKET.policy().to_builder().base(ms(500)).jitter(Jitter::Full).build().unwrap();
    let [before, after] = [ms(9_900), ms(10_100)].map(|uptime| busiest(&fleet(&policy, uptime, 10_000)));
    // Backoff alone sends 2,000 at once, and a spread of 10 s sends 100. The larger of the two draws leaves out the
    // first tenths of a second and sends 180 just before the end of the base; standard deviations 13 and 10.
    assert!(before < 240 && after < 160, "{before} and {after} of 10,000 in the busiest 100 ms");
}

/// The delay is the larger of two draws, and its source is the one that was larger.
#[test]
fn the_larger_of_spread_and_backoff_is_the_delay_after_a_flapping_or_distrusted_loss() {
    for is_distrusted in [false, true] {
        let policy = PLAIN.base(secs(2)).spread(secs(10)).build().unwrap();
        let (mut spread, mut backoff) = (Vec::new(), 0);
        for seed in 0..1_000 {
            let mut link = Link::new(policy).seed(seed).up();
            link.advance(if is_distrusted { secs(60) } else { secs(1) });
            if is_distrusted {
                link.machine.distrust(link.machine.generation());
            }
            match waits(link.ended(Outcome::TRANSIENT)) {
                (after, DelaySource::Schedule) if after == secs(2) => backoff += 1,
                (after, DelaySource::Spread) if secs(2) < after && after <= secs(10) => spread.push(after),
                other => panic!("seed {seed}: {other:?}"),
            }
        }
        // A fifth of the spread's draws are below 2 s: 200 expected, standard deviation 13.
        assert!((140..=260).contains(&backoff), "{backoff}");
        assert!(spread.iter().min() < Some(&ms(2_200)) && spread.iter().max() > Some(&ms(9_800)));
    }
}

#[test]
fn the_count_and_the_schedule_go_on_after_a_spread_loss_that_was_not_stable() {
    let mut link = Link::new(PLAIN.spread(ms(1)).max_attempts(4).build().unwrap()).up();
    let waits = [(); 3].map(|()| {
        let wait = link.lose_after(secs(1));
        link.reopen();
        wait
    });
    assert_eq!(waits, [500, 1000, 2000].map(ms));
    link.advance(secs(1));
    assert_eq!(link.ended(Outcome::TRANSIENT), ReconnectStep::GiveUp(StopReason::Attempts));
}

/// A failed attempt to connect backs off without a spread, as ever.
#[test]
fn failed_attempts_after_a_loss_are_not_spread() {
    let mut link = Link::new(PLAIN.spread(secs(10)).build().unwrap()).up();
    link.advance(secs(1));
    let _ = link.ended(Outcome::TRANSIENT);
    link.retry();
    assert_eq!(waits(link.ended(Outcome::TRANSIENT)), (secs(1), DelaySource::Schedule));
}

/// A client that was early once is not always early.
#[test]
fn each_flapping_loss_draws_its_own_spread() {
    let mut link = Link::new(PLAIN.base(ms(1)).cap(ms(1)).spread(secs(10)).build().unwrap()).up();
    let mut seen: Vec<_> = (0..50)
        .map(|_| {
            let wait = link.lose_after(secs(1));
            link.reopen();
            wait
        })
        .collect();
    assert!(seen.iter().any(|&wait| wait < secs(3)) && seen.iter().any(|&wait| wait > secs(7)), "{seen:?}");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 50);
}

/// The hint is the least wait; clients are spread above it over the spread, whatever `stable_after` says.
#[test]
fn a_hint_is_a_floor_under_the_spread_of_every_loss() {
    let hinted = |hint| Outcome::Failed { kind: FailureKind::Transient, hint: Some(hint) };
    let after = |policy: PolicyBuilder, hint, uptime| {
        let policy = policy.spread(secs(10)).build().unwrap();
        (0..200)
            .map(|seed| {
                let mut link = Link::new(policy).seed(seed).up();
                link.advance(uptime);
                let (after, source) = waits(link.ended(hinted(hint)));
                assert_eq!(source, DelaySource::Hint);
                after
            })
            .collect::<Vec<_>>()
    };
    for uptime in [secs(1), secs(60)] {
        let waits = after(PLAIN, ServerHint::AtLeast(secs(4)), uptime);
        assert!(waits.iter().all(|&wait| secs(4) <= wait && wait <= secs(14)), "{waits:?}");
        assert!(waits.iter().any(|&wait| wait < secs(5)) && waits.iter().any(|&wait| wait > secs(13)), "{waits:?}");
        assert!(after(PLAIN, ServerHint::Reserved(secs(4)), uptime).iter().all(|&wait| wait == secs(4)));
        let clamped = after(PLAIN.hint_mode(HintMode::Clamp(Duration::ZERO)), ServerHint::AtLeast(ms(1)), uptime);
        assert!(clamped.iter().any(|&wait| wait > secs(8)), "{clamped:?}");
    }
}

/// A cap that is applied after the draw is not a cap on the spread.
#[test]
fn a_cap_on_draws_does_not_narrow_the_spread_above_a_hint() {
    let policy = PLAIN.cap(secs(1)).jitter(Jitter::Added(ms(100))).spread(secs(10)).build().unwrap();
    let hint = Outcome::throttled(Some(ServerHint::AtLeast(ms(10))));
    let latest = (0..100).map(|seed| {
        let mut link = Link::new(policy).seed(seed).up();
        link.advance(secs(60));
        waits(link.ended(hint)).0
    });
    assert!(latest.max() > Some(secs(8)));
}

#[test]
fn the_spread_of_a_flapping_loss_counts_against_the_time_limit() {
    let uptime = secs(9);
    let end = |limit| {
        let mut link = Link::new(PLAIN.spread(secs(9)).max_elapsed(limit).build().unwrap()).seed(1).up();
        link.advance(uptime);
        link.ended(Outcome::TRANSIENT)
    };
    let (after, source) = waits(end(secs(60)));
    assert_eq!(source, DelaySource::Spread);
    assert_eq!(waits(end(uptime + after)).0, after);
    assert_eq!(end(uptime + after - Duration::from_nanos(1)), ReconnectStep::GiveUp(StopReason::Elapsed));
}

/// Without a spread, nothing has changed: the schedule alone decides.
#[test]
fn without_a_spread_a_flapping_loss_backs_off_by_the_schedule() {
    let mut link = Link::new(PLAIN.build().unwrap()).up();
    link.advance(secs(1));
    assert_eq!(waits(link.ended(Outcome::TRANSIENT)), (ms(500), DelaySource::Schedule));
}
