use core::time::Duration;

use stagger_core::guard::{Answer, Permit, Permits};
use stagger_core::machine::{RetryMachine, RetryState};
use stagger_core::pacer::Pacer;
use stagger_core::quiet::{QuietPeriod, QuietState};
use stagger_core::{Guard, Guards, Instant, Outcome, Policy, Seed, StopReason};

use super::states::Harness;
use crate::laws::support::{Start, ms, secs};

fn policy() -> Policy {
    Policy::exponential(ms(100), secs(1)).max_attempts(4).build().unwrap()
}

/// A pacer at 95 calls per second whose next turn is later.
fn paced() -> (Pacer, Instant) {
    let mut harness = Harness::new(Pacer::new());
    harness.learn();
    harness.wait();
    let now = harness.now;
    (harness.pacer, now)
}

fn turn(
    permits: &mut Permits,
    now: Instant,
    deadline: Option<Duration>,
    guards: &Guards<'_>,
) -> Result<Duration, StopReason> {
    let (policy, mut state) = (policy(), RetryState::new());
    RetryMachine::new(&policy, &mut state, Seed::new(1))
        .deadline(deadline.map(|length| now.saturating_add(length)))
        .turn(permits, || now, guards)
}

#[test]
fn a_call_whose_deadline_is_before_its_turn_is_rejected_at_once() {
    for (deadline, want) in [
        (None, None),
        (Some(ms(15)), None),
        (Some(ms(5)), Some(StopReason::PACER)),
        (Some(Duration::ZERO), Some(StopReason::Deadline)),
    ] {
        let (pacer, now) = paced();
        let mut permits = Permits::NONE;
        let list: [&dyn Guard; 1] = [&pacer];
        let got = turn(&mut permits, now, deadline, &Guards::of(&list));
        assert_eq!(got.err(), want, "{deadline:?}");
        assert_eq!((pacer.snapshot().waiting == 1, permits != Permits::NONE), (want.is_none(), want.is_none()));
    }
}

#[test]
fn a_turn_is_kept_while_the_quiet_period_lets_the_call_wait() {
    let (pacer, now) = paced();
    let quiet = QuietPeriod::new();
    let list: [&dyn Guard; 2] = [&pacer, &quiet];
    let guards = Guards::of(&list);
    let mut permits = Permits::NONE;
    let wait = turn(&mut permits, now, None, &guards).unwrap();
    assert!(wait < ms(20), "{wait:?}");
    let now = now.saturating_add(wait);
    quiet.pause(secs(3), &now);
    for passed in [Duration::ZERO, Duration::ZERO, ms(500), secs(1)] {
        let at = now.saturating_add(passed);
        let wait = turn(&mut permits, at, None, &guards).unwrap();
        assert!((secs(3) - passed..secs(3) + ms(1)).contains(&wait), "{wait:?}");
        assert_eq!((pacer.snapshot().waiting, quiet.snapshot(&at).waiting), (0, 1));
    }
    let end = now.saturating_add(secs(3) + ms(1));
    assert_eq!(turn(&mut permits, end, None, &guards), Ok(Duration::ZERO));
    assert_eq!(quiet.snapshot(&end).state, QuietState::Probing);
    guards.abandon(permits, || end);
}

#[test]
fn a_call_that_the_quiet_period_would_reject_does_not_wait_for_the_pacer() {
    let (pacer, now) = paced();
    let quiet = QuietPeriod::new();
    quiet.pause(secs(10), &now);
    let mut permits = Permits::NONE;
    let list: [&dyn Guard; 2] = [&pacer, &quiet];
    let got = turn(&mut permits, now, Some(secs(5)), &Guards::of(&list));
    assert_eq!((got, pacer.snapshot().waiting), (Err(StopReason::QUIET), 0));
}

#[test]
fn permits_that_are_released_or_abandoned_free_their_place() {
    for way in 0..2 {
        let (pacer, now) = paced();
        let list: [&dyn Guard; 1] = [&pacer];
        let guards = Guards::of(&list);
        let mut permits = Permits::NONE;
        assert!(turn(&mut permits, now, None, &guards).is_ok());
        assert_eq!(pacer.snapshot().waiting, 1);
        match way {
            0 => guards.release(permits, || now),
            _ => guards.abandon(permits, || now),
        }
        assert_eq!(pacer.snapshot().waiting, 0, "way {way}");
    }
}

#[test]
fn outcomes_of_a_call_reach_the_pacer() {
    let pacer = Pacer::new();
    let list: [&dyn Guard; 1] = [&pacer];
    let guards = Guards::of(&list);
    let (policy, mut state, now) = (policy(), RetryState::new(), Instant::from_nanos(1_000_000_000));
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let mut permits = Permits::NONE;
    assert_eq!(retry.turn(&mut permits, || now, &guards), Ok(Duration::ZERO));
    let permits = retry.begin(permits, || now, &guards).unwrap();
    let _ = retry.decide(Outcome::throttled(None), permits, || now, &guards);
    assert!(!pacer.is_at_rest(&now));
    assert_eq!(pacer.first(&now), Answer::Go(Permit::NONE));
}
