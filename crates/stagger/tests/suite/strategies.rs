//! A [`Strategy`](stagger::machine::Strategy) computes the delays of every entry point, and nothing else changes.

use core::time::Duration;
use std::collections::HashSet;
use std::sync::Mutex;

use futures_lite::future::block_on;
use stagger::budget::Tokens;
use stagger::machine::RetryContext;
use stagger::observe::Action;
use stagger::testing::{NoSleep, Recorder, VirtualClock};
use stagger::{DelaySource, FailureKind, Outcome, Policy, Retrier, ServerHint, StopReason, policy};

use super::entry_points::{RETRYING, Run, TICKERS};
use super::support::{Fail, ms};

const POLICY: Policy = policy!(zero().max_attempts(4));

/// Twice the delay before, and as many milliseconds more as the retry has in its number: 1, 4, 11 ms.
fn growing(retry: &RetryContext) -> Option<Duration> {
    Some(2 * retry.previous + ms(u64::from(retry.number)))
}

fn actions(retrier: Retrier, run: Run, fail: Fail) -> Vec<Action> {
    let (recorder, clock) = (Recorder::new(), VirtualClock::new());
    run(&retrier.classify(Fail::outcome).on_event(recorder.listener()), &clock, fail);
    recorder.events().iter().map(|event| event.action).collect()
}

fn scheduled(millis: u64) -> Action {
    Action::Retry { after: ms(millis), source: DelaySource::Schedule }
}

#[test]
fn a_strategy_computes_the_delays_of_every_entry_point() {
    let want = [scheduled(1), scheduled(4), scheduled(11), Action::Stop(StopReason::Attempts)];
    for (name, run) in RETRYING.into_iter().chain(TICKERS) {
        assert_eq!(actions(Retrier::new(POLICY).strategy(growing), run, Fail::TRANSIENT), want, "{name}");
    }
}

#[test]
fn a_strategy_without_a_further_delay_ends_the_call() {
    let one = |retry: &RetryContext| Some(ms(5)).filter(|_| retry.number == 1);
    for (name, run) in RETRYING.into_iter().chain(TICKERS) {
        let got = actions(Retrier::new(POLICY).strategy(one), run, Fail::TRANSIENT);
        assert_eq!(got, [scheduled(5), Action::Stop(StopReason::Exhausted)], "{name}");
    }
}

#[test]
fn limits_and_guards_apply_to_the_delays_of_a_strategy() {
    let slow = |_: &RetryContext| Some(ms(100));
    let limited = Retrier::new(policy!(zero().unlimited_attempts().max_elapsed(ms(250)))).strategy(slow);
    let spent = Retrier::new(POLICY).strategy(slow).budget(Tokens::builder().capacity(10).build().unwrap());
    for (name, run) in RETRYING {
        let got = actions(limited.clone(), run, Fail::TRANSIENT);
        assert_eq!(got, [scheduled(100), scheduled(100), Action::Stop(StopReason::Elapsed)], "{name}");
    }
    let (_, run) = RETRYING[0];
    assert_eq!(
        actions(spent, run, Fail::TRANSIENT),
        [scheduled(100), scheduled(100), Action::Stop(StopReason::Budget)]
    );
}

#[test]
fn a_hint_is_a_minimum_for_a_strategy_and_the_schedule_goes_on_below_it() {
    let hinted = Fail(Outcome::throttled(Some(ServerHint::AtLeast(ms(50)))));
    let exact = Retrier::new(policy!(zero().max_attempts(3).hint_spread(Ratio::ZERO))).strategy(growing);
    for (name, run) in RETRYING {
        let waits: Vec<_> = actions(exact.clone(), run, hinted)
            .into_iter()
            .filter_map(|action| match action {
                Action::Retry { after, source: DelaySource::Hint } => Some(after),
                _ => None,
            })
            .collect();
        assert!((ms(50)..=ms(51)).contains(&waits[0]) && (ms(50)..=ms(54)).contains(&waits[1]), "{name}: {waits:?}");
    }
}

#[test]
fn a_strategy_gets_the_kind_of_the_failure_and_bits_that_no_two_retries_share() {
    static SEEN: Mutex<Vec<RetryContext>> = Mutex::new(Vec::new());
    let record = |retry: &RetryContext| {
        SEEN.lock().unwrap().push(*retry);
        Some(Duration::ZERO)
    };
    let retrier = Retrier::new(POLICY).strategy(record).classify(Fail::outcome);
    for _ in 0..100 {
        let throttled = async || Err::<(), _>(Fail(Outcome::throttled(None)));
        block_on(retrier.run_on(NoSleep, throttled)).unwrap_err();
    }
    let seen = SEEN.lock().unwrap();
    assert!(seen.iter().all(|retry| retry.kind == FailureKind::Throttled));
    assert_eq!(seen.iter().map(|retry| retry.random).collect::<HashSet<_>>().len(), 300);
}
