//! Quiet periods that are created when they are needed, and attempts that are prepared for a while.

use core::time::Duration;

use stagger_core::breaker::CircuitBreaker;
use stagger_core::budget::Tokens;
use stagger_core::guard::{Limiter, LimiterMode, LimiterPermit, Permits, Turn};
use stagger_core::machine::{RetryMachine, RetryState};
use stagger_core::pacer::{Pacer, PacerState};
use stagger_core::quiet::{QuietPeriod, QuietState, QuietTrigger};
use stagger_core::{Budget, Guards, Instant, Outcome, Policy, Seed, ServerHint};

use crate::laws::support::{ms, secs};

const START: Instant = Instant::from_nanos(7_000_000_000_000);
const REFUSED: Outcome = Outcome::throttled(None);

fn permit(turn: Turn) -> LimiterPermit {
    match turn {
        Turn::Now(permit) => permit,
        turn => panic!("{turn:?}"),
    }
}

#[test]
fn a_new_quiet_period_returns_at_the_rate_that_another_one_has_learned() {
    let all = QuietPeriod::new();
    for n in 0..500_u32 {
        all.record(LimiterPermit::NONE, &Outcome::Success, &START.saturating_add(ms(10) * n));
    }
    let now = START.saturating_add(secs(5));
    let learned = all.learned_interval(&now);
    assert!((ms(9)..=ms(11)).contains(&learned), "{learned:?}");

    let one = QuietPeriod::new();
    one.assume_interval(learned);
    one.pause(secs(2), &now);
    assert_eq!(one.snapshot(&now).interval, learned);
    for (assumed, want) in [(Duration::ZERO, Duration::from_micros(1)), (secs(60), secs(1))] {
        let one = QuietPeriod::new();
        one.assume_interval(assumed);
        one.pause(secs(2), &now);
        assert_eq!(one.snapshot(&now).interval, want, "{assumed:?}");
    }
}

#[test]
fn with_hints_alone_as_trigger_refusals_lengthen_a_pause_but_begin_none() {
    let quiet = QuietPeriod::builder().trigger(QuietTrigger::Hints).build().unwrap();
    for _ in 0..1_000 {
        quiet.record(permit(quiet.admit(LimiterPermit::NONE, None, &START)), &REFUSED, &START);
    }
    assert_eq!(quiet.snapshot(&START).state, QuietState::Open);
    assert!(quiet.is_at_rest(&START));
    quiet.record(LimiterPermit::NONE, &Outcome::throttled(Some(ServerHint::AtLeast(secs(2)))), &START);
    let end = START.saturating_add(secs(2));
    let probe = permit(quiet.admit(LimiterPermit::NONE, None, &end));
    quiet.record(probe, &REFUSED, &end);
    let seen = quiet.snapshot(&end);
    assert_eq!((seen.state, seen.remaining), (QuietState::Quiet, secs(4)));
}

#[test]
fn an_attempt_that_was_admitted_before_a_pause_may_not_begin_in_it() {
    let quiet = QuietPeriod::new();
    let before = permit(quiet.admit(LimiterPermit::NONE, None, &START));
    assert!(quiet.is_current(&before));
    quiet.pause(secs(1), &START);
    assert!(!quiet.is_current(&before), "quiet");
    assert!(!quiet.is_current(&LimiterPermit::NONE), "it has not asked");
    let end = START.saturating_add(secs(1));
    let probe = permit(quiet.admit(LimiterPermit::NONE, None, &end));
    assert!(quiet.is_current(&probe));
    assert!(!quiet.is_current(&before), "probing");
    quiet.record(probe, &Outcome::Success, &end);
    // Nobody waits, so the return lasts until the next call.
    let next = permit(quiet.admit(LimiterPermit::NONE, None, &end));
    assert!(quiet.is_current(&next) && quiet.is_current(&before), "open");

    let observed = QuietPeriod::builder().mode(LimiterMode::Observe).build().unwrap();
    observed.pause(secs(1), &START);
    assert!(observed.is_current(&permit(observed.admit(LimiterPermit::NONE, None, &START))));
}

#[test]
fn a_postponed_attempt_keeps_the_turn_that_its_pacer_gave() {
    let policy = Policy::constant(ms(10)).max_attempts(3).build().unwrap();
    let (quiet, pacer) = (QuietPeriod::new(), Pacer::new());
    let mut now = START;
    for n in 0..120 {
        now = now.saturating_add(ms(10));
        let answer = if n % 2 == 0 { Outcome::throttled(None) } else { Outcome::Success };
        match pacer.admit(LimiterPermit::NONE, None, &now) {
            Turn::Now(permit) => pacer.record(permit, &answer, &now),
            Turn::Wait { permit, .. } => pacer.release(permit),
            Turn::Rejected { .. } => {}
        }
    }
    assert_eq!(pacer.snapshot().state, PacerState::Paced);
    now = now.saturating_add(secs(1));
    let guards = Guards::none().quiet(&quiet).pacer(&pacer);
    let mut state = RetryState::new();
    let mut call = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let mut permits = Permits::NONE;
    assert_eq!(call.turn(&mut permits, || now, &guards), Ok(Duration::ZERO));
    let begun = call.begin(permits, || now, &guards).unwrap();
    quiet.pause(secs(1), &now);
    permits = call.postpone(begun, || now, &guards).expect("a pause has begun");
    let end = now.saturating_add(secs(1));
    // Other calls take all turns of that moment.
    loop {
        match pacer.admit(LimiterPermit::NONE, None, &end) {
            Turn::Now(permit) => pacer.release(permit),
            Turn::Wait { permit, .. } => break pacer.release(permit),
            Turn::Rejected { .. } => break,
        }
    }
    assert_eq!(call.turn(&mut permits, || end, &guards), Ok(Duration::ZERO));
    guards.release(permits);
}

#[test]
fn a_postponed_attempt_keeps_its_number_and_its_charge_and_asks_the_breaker_again() {
    let policy = Policy::constant(ms(10)).max_attempts(3).build().unwrap();
    let (quiet, budget, breaker) = (QuietPeriod::new(), Tokens::new(), CircuitBreaker::new(Seed::new(1)));
    let guards = Guards::none().quiet(&quiet).budget(&budget).breaker(&breaker);
    let mut state = RetryState::new();
    let mut call = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let mut permits = Permits::NONE;
    for number in 1..=2 {
        assert_eq!(call.turn(&mut permits, || START, &guards), Ok(Duration::ZERO));
        let begun = call.begin(permits, || START, &guards).unwrap();
        let charged = budget.available();
        let begun = call.postpone(begun, || START, &guards).expect_err("nothing holds it");
        // Another call meets the hint while this one is prepared.
        quiet.pause(secs(1), &START);
        permits = call.postpone(begun, || START, &guards).expect("a pause has begun");
        assert_eq!(call.turn(&mut permits, || START, &guards), Ok(secs(1)));
        let end = START.saturating_add(secs(1));
        assert_eq!(call.turn(&mut permits, || end, &guards), Ok(Duration::ZERO));
        let begun = call.begin(permits, || end, &guards).unwrap();
        assert_eq!((call.attempt(), budget.available()), (number, charged));
        let decision = call.decide(Outcome::TRANSIENT, begun, || end, &guards);
        let stagger_core::machine::Decision::Retry { permit, .. } = decision else { panic!("{decision:?}") };
        permits = permit;
        // The probe has ended the pause; the next call finds that nobody waits.
        quiet.record(permit_of(&quiet, end), &Outcome::Success, &end);
        assert_eq!(quiet.snapshot(&end).state, QuietState::Open);
    }
    guards.release(permits);
    assert_eq!(quiet.snapshot(&START).waiting, 0);
}

fn permit_of(quiet: &QuietPeriod, now: Instant) -> LimiterPermit {
    permit(quiet.admit(LimiterPermit::NONE, None, &now))
}
