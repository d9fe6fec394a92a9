//! Episodes: attempts and schedule reset after a healthy run, and draws continue with new numbers.

use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{Guard, Guards, Outcome, Policy, Seed, StopReason};

use crate::laws::support::{RecordingGuard, at, ms, secs};

/// Returns the delays of a supervised program whose `k`-th run lasts `uptimes[k]`, and why it stopped.
fn supervise(policy: &Policy, uptimes: &[Duration], seed: u64) -> (Vec<Duration>, Option<StopReason>) {
    let (guards, mut now) = (Guards::none(), secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(policy, &mut state, Seed::new(seed));
    let (mut permit, mut waits) = (Permits::NONE, Vec::new());
    for &uptime in uptimes {
        permit = retry.begin(permit, || at(now), &guards).unwrap();
        now += uptime;
        retry.reset_if_healthy(uptime);
        match retry.decide(Outcome::TRANSIENT, permit, || at(now), &guards) {
            Decision::Retry { after, permit: granted, .. } => {
                let (lo, hi) = policy.bounds(retry.retry_number()).unwrap();
                assert!((lo..=hi).contains(&after), "{after:?} is not retry {}", retry.retry_number());
                waits.push(after);
                permit = granted;
            }
            Decision::Stop(stop) => return (waits, Some(stop)),
            _ => return (waits, None),
        }
    }
    (waits, None)
}

/// The healthy attempt is the first that counts again.
#[test]
fn an_uptime_of_stable_after_resets_attempts_and_schedule() {
    let policy = Policy::exponential(ms(100), secs(10)).jitter(stagger_core::Jitter::None).stable_after(secs(60));
    let policy = policy.max_attempts(4).build().unwrap();
    let (short, long) = (secs(60) - Duration::from_nanos(1), secs(60));
    for (uptimes, want, stop) in [
        (vec![short; 9], vec![100, 200, 400], Some(StopReason::Attempts)),
        (
            vec![short, short, long, short, short, short, short],
            vec![100, 200, 100, 200, 400],
            Some(StopReason::Attempts),
        ),
        (vec![long; 6], vec![100; 6], None),
    ] {
        let want = want.into_iter().map(ms).collect::<Vec<_>>();
        assert_eq!(supervise(&policy, &uptimes, 1), (want, stop), "{uptimes:?}");
    }
}

#[test]
fn a_healthy_uptime_resets_a_list() {
    let policy = Policy::list(&[1, 2, 3].map(secs)).jitter(stagger_core::Jitter::None).stable_after(secs(60));
    let policy = policy.unlimited_attempts().build().unwrap();
    let uptimes = [1, 1, 1, 60, 1, 1].map(secs);
    assert_eq!(supervise(&policy, &uptimes, 1).0, [1, 2, 3, 1, 2, 3].map(secs));
}

#[test]
fn stable_after_zero_always_resets_and_unset_never_does() {
    let policy = Policy::exponential(ms(100), secs(10)).jitter(stagger_core::Jitter::None).unlimited_attempts();
    let always = policy.stable_after(Duration::ZERO).build().unwrap();
    assert_eq!(supervise(&always, &[Duration::ZERO; 4], 1).0, [ms(100); 4]);
    let never = policy.build().unwrap();
    assert_eq!(supervise(&never, &[secs(86_400); 4], 1).0, [100, 200, 400, 800].map(ms));
}

#[test]
fn reset_if_healthy_returns_whether_it_reset() {
    let policy = Policy::DEFAULT.to_builder().stable_after(secs(10)).build().unwrap();
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    assert!(!retry.reset_if_healthy(ms(9_999)));
    assert!(retry.reset_if_healthy(secs(10)));
    let mut state = RetryState::new();
    assert!(!RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1)).reset_if_healthy(Duration::MAX));
}

/// Draws continue with new numbers: a program that crashes every hour must not wait the same delay every time.
#[test]
fn every_episode_has_its_own_draw_numbers() {
    let policy = Policy::exponential(secs(1), secs(1)).stable_after(Duration::ZERO).unlimited_attempts();
    let (mut waits, _) = supervise(&policy.build().unwrap(), &[secs(1); 200], 1);
    waits.sort();
    waits.dedup();
    assert_eq!(waits.len(), 200);
}

#[test]
fn the_first_two_failures_of_an_episode_draw_separately() {
    let policy = Policy::constant(secs(1)).jitter(stagger_core::Jitter::Full).stable_after(secs(60));
    let (mut waits, _) =
        supervise(&policy.unlimited_attempts().build().unwrap(), &[1, 60, 1, 1, 60, 1, 1].map(secs), 1);
    waits.sort();
    waits.dedup();
    assert_eq!(waits.len(), 7, "{waits:?}");
}

#[test]
fn a_reset_does_not_restart_max_elapsed() {
    let policy = Policy::constant(secs(1)).max_elapsed(secs(100)).stable_after(secs(10)).unlimited_attempts();
    let (waits, stop) = supervise(&policy.build().unwrap(), &[secs(30); 9], 1);
    assert_eq!((waits.len(), stop), (3, Some(StopReason::Elapsed)));
}

#[test]
fn a_reset_during_a_sleep_keeps_the_permit_of_the_retry() {
    let (budget, policy) = (RecordingGuard::budget(), Policy::DEFAULT);
    let list: [&dyn Guard; 1] = [&budget];
    let guards = Guards::of(&list);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::TRANSIENT, permit, now, &guards) else {
        panic!("the retry is allowed")
    };
    retry.reset();
    let permit = retry.begin(permit, now, &guards).unwrap();
    assert_eq!(retry.attempt(), 1);
    guards.abandon(permit, now);
    assert_eq!(budget.events(), ["ask first", "made 1 Ailing", "reserve Transient", "ask retry", "made 2 Unknown"]);
    budget.assert_balanced();
}

/// The retry after a healthy run holds a budget permit, so it does not count as a first attempt.
#[test]
fn a_retry_that_begins_an_episode_keeps_its_permit() {
    let (budget, policy) =
        (RecordingGuard::budget(), Policy::DEFAULT.to_builder().stable_after(secs(10)).build().unwrap());
    let list: [&dyn Guard; 1] = [&budget];
    let guards = Guards::of(&list);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    assert!(retry.reset_if_healthy(secs(10)));
    let Decision::Retry { permit, .. } = retry.decide(Outcome::TRANSIENT, permit, now, &guards) else {
        panic!("the retry is allowed")
    };
    let permit = retry.begin(permit, now, &guards).unwrap();
    let _ = retry.decide(Outcome::Success, permit, now, &guards);
    assert_eq!(budget.events(), ["ask first", "made 1 Ailing", "reserve Transient", "ask retry", "made 2 Healthy"]);
    budget.assert_balanced();
}
