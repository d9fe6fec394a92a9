//! Starting again: by health, with new numbers.

use core::time::Duration;

use stagger_core::{
    Guards, Outcome, Policy, Seed, StopReason, guard::Permits, machine::Decision, machine::RetryMachine,
    machine::RetryState,
};

use crate::laws::support::{RecordingBudget, at, ms, secs};

/// The delays that a supervised program gets whose `k`-th life lasts `lives[k]`.
fn supervise(policy: &Policy, lives: &[Duration], seed: u64) -> (Vec<Duration>, Option<StopReason>) {
    let (guards, mut now) = (Guards::none(), secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(policy, &mut state, Seed::new(seed));
    let (mut permit, mut waits) = (Permits::NONE, Vec::new());
    for &lived in lives {
        permit = retry.begin(permit, || at(now), &guards).unwrap();
        now += lived;
        retry.reset_if_healthy(lived);
        match retry.decide(Outcome::TRANSIENT, permit, || at(now), &guards) {
            Decision::Retry { after, permit: lent, .. } => {
                let (lo, hi) = policy.bounds(retry.retry_number()).unwrap();
                assert!((lo..=hi).contains(&after), "{after:?} is not retry {}", retry.retry_number());
                waits.push(after);
                permit = lent;
            }
            Decision::Stop(stop) => return (waits, Some(stop)),
            _ => return (waits, None),
        }
    }
    (waits, None)
}

#[test]
fn the_count_and_the_schedule_start_again_after_a_life_of_stable_after() {
    let policy = Policy::exponential(ms(100), secs(10)).jitter(stagger_core::Jitter::None).stable_after(secs(60));
    let policy = policy.max_attempts(4).build().unwrap();
    let (short, long) = (secs(60) - Duration::from_nanos(1), secs(60));
    for (lives, want, stop) in [
        (vec![short; 9], vec![100, 200, 400], Some(StopReason::Attempts)),
        (
            vec![short, short, long, short, short, short, short],
            vec![100, 200, 100, 200, 400, 800],
            Some(StopReason::Attempts),
        ),
        (vec![long; 6], vec![100; 6], None),
    ] {
        let want = want.into_iter().map(ms).collect::<Vec<_>>();
        assert_eq!(supervise(&policy, &lives, 1), (want, stop), "{lives:?}");
    }
}

#[test]
fn a_list_starts_again_too() {
    let policy = Policy::list(&[1, 2, 3].map(secs)).jitter(stagger_core::Jitter::None).stable_after(secs(60));
    let policy = policy.unlimited_attempts().build().unwrap();
    let lives = [1, 1, 1, 60, 1, 1].map(secs);
    assert_eq!(supervise(&policy, &lives, 1).0, [1, 2, 3, 1, 2, 3].map(secs));
}

#[test]
fn zero_starts_again_every_time_and_nothing_set_never() {
    let policy = Policy::exponential(ms(100), secs(10)).jitter(stagger_core::Jitter::None).unlimited_attempts();
    let always = policy.stable_after(Duration::ZERO).build().unwrap();
    assert_eq!(supervise(&always, &[Duration::ZERO; 4], 1).0, [ms(100); 4]);
    let never = policy.build().unwrap();
    assert_eq!(supervise(&never, &[secs(86_400); 4], 1).0, [100, 200, 400, 800].map(ms));
}

#[test]
fn whether_it_started_again_is_told() {
    let policy = Policy::DEFAULT.to_builder().stable_after(secs(10)).build().unwrap();
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    assert!(!retry.reset_if_healthy(ms(9_999)));
    assert!(retry.reset_if_healthy(secs(10)));
    let mut state = RetryState::new();
    assert!(!RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1)).reset_if_healthy(Duration::MAX));
}

/// Draws go on with new numbers: a program that dies every hour must not wait the same every time.
#[test]
fn every_episode_draws_with_numbers_of_its_own() {
    let policy = Policy::exponential(secs(1), secs(1)).stable_after(Duration::ZERO).unlimited_attempts();
    let (mut waits, _) = supervise(&policy.build().unwrap(), &[secs(1); 200], 1);
    waits.sort();
    waits.dedup();
    assert_eq!(waits.len(), 200);
}

/// Within an episode too: the failure that began it and the next one are two draws.
#[test]
fn the_failure_that_begins_an_episode_and_the_next_are_two_draws() {
    let policy = Policy::constant(secs(1)).jitter(stagger_core::Jitter::Full).stable_after(secs(60));
    let (mut waits, _) =
        supervise(&policy.unlimited_attempts().build().unwrap(), &[1, 60, 1, 1, 60, 1, 1].map(secs), 1);
    waits.sort();
    waits.dedup();
    assert_eq!(waits.len(), 7, "{waits:?}");
}

#[test]
fn starting_again_does_not_start_the_clock_again() {
    let policy = Policy::constant(secs(1)).max_elapsed(secs(100)).stable_after(secs(10)).unlimited_attempts();
    let (waits, stop) = supervise(&policy.build().unwrap(), &[secs(30); 9], 1);
    assert_eq!((waits.len(), stop), (3, Some(StopReason::Elapsed)));
}

#[test]
fn starting_again_in_a_sleep_does_not_lose_the_loan_of_the_coming_attempt() {
    let (budget, policy) = (RecordingBudget::default(), Policy::DEFAULT);
    let guards = Guards::none().budget(&budget);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::TRANSIENT, permit, now, &guards) else {
        panic!("nothing forbids it")
    };
    retry.reset();
    let permit = retry.begin(permit, now, &guards).unwrap();
    assert_eq!(retry.attempt(), 1);
    guards.abandon(permit, now);
    assert_eq!(budget.events(), ["on_first_attempt", "record 1 Ailing", "try_acquire Transient", "record 2 Unknown"]);
    budget.assert_balanced();
}

/// The retry after a healthy life was paid for; it is no first attempt.
#[test]
fn a_retry_that_begins_an_episode_keeps_its_loan() {
    let (budget, policy) =
        (RecordingBudget::default(), Policy::DEFAULT.to_builder().stable_after(secs(10)).build().unwrap());
    let guards = Guards::none().budget(&budget);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    assert!(retry.reset_if_healthy(secs(10)));
    let Decision::Retry { permit, .. } = retry.decide(Outcome::TRANSIENT, permit, now, &guards) else {
        panic!("nothing forbids it")
    };
    let permit = retry.begin(permit, now, &guards).unwrap();
    let _ = retry.decide(Outcome::Success, permit, now, &guards);
    assert_eq!(budget.events(), ["on_first_attempt", "record 1 Ailing", "try_acquire Transient", "record 2 Healthy"]);
    budget.assert_balanced();
}
