//! [`Retrier`]: rules and guards that all of its calls share.

use core::time::Duration;
use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};

use futures_lite::future::block_on;
use stagger::budget::Tokens;
use stagger::machine::RetryContext;
use stagger::observe::Action;
use stagger::testing::{NoSleep, Recorder, VirtualClock};
use stagger::{
    DelaySource, Error, FailureKind, Outcome, Policy, Retrier, RetryResultExt as _, ServerHint, StopReason, policy,
};

use super::entry_points::{RETRYING, Run, TICKERS};
use super::support::{Fail, RecordingBreaker, RecordingBudget, guarded, ms};

const POLICY: Policy = policy!(zero().max_attempts(3));

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{self:?}")]
enum Api {
    Busy,
    Gone,
}

/// Returns the stop reason and the attempts of a call that always fails with this error.
fn end<E: core::fmt::Debug + Unpin + 'static>(retrier: &Retrier, error: impl Fn() -> E) -> (StopReason, u32) {
    let of = |error: Error<E>| (error.stop_reason(), error.attempts());
    let ends = [
        of(retrier.blocking(|| Err::<(), _>(error())).unwrap_err()),
        of(block_on(retrier.run_on(NoSleep, async || Err::<(), _>(error()))).unwrap_err()),
        of(block_on(retrier.run_with_on(NoSleep, &mut (), async |(), _| Err::<(), _>(error()))).unwrap_err()),
    ];
    assert_eq!(ends, [ends[0]; 3]);
    ends[0]
}

#[test]
fn each_error_type_is_classified_by_its_own_rule() {
    let retrier = Retrier::new(POLICY)
        .when(|error: &Api| *error == Api::Busy)
        .classify_exactly(|error: &String| if error == "never" { Outcome::Permanent } else { Outcome::TRANSIENT });
    assert_eq!(end(&retrier, || Api::Busy), (StopReason::Attempts, 3));
    assert_eq!(end(&retrier, || Api::Gone), (StopReason::Permanent, 1));
    assert_eq!(end(&retrier, || String::from("later")), (StopReason::Attempts, 3));
    assert_eq!(end(&retrier, || String::from("never")), (StopReason::Permanent, 1));
    // A type without a rule is classified by the built-in rules.
    assert_eq!(end(&retrier, || io::Error::from(ErrorKind::ConnectionReset)), (StopReason::Attempts, 3));
    assert_eq!(end(&retrier, || io::Error::from(ErrorKind::NotFound)), (StopReason::Permanent, 1));
    assert_eq!(end(&retrier, || "text"), (StopReason::Attempts, 3));
}

#[test]
fn a_rule_replaces_only_an_earlier_rule_for_the_same_type() {
    let retrier = Retrier::new(POLICY).when(|_: &Api| false).when(|_: &Fail| false).when(|_: &Api| true);
    assert_eq!(end(&retrier, || Api::Gone), (StopReason::Attempts, 3));
    assert_eq!(end(&retrier, || Fail::TRANSIENT), (StopReason::Permanent, 1));
    let overridden = retrier.classify(|_: &io::Error| Outcome::TRANSIENT);
    assert_eq!(
        end(&overridden, || io::Error::from(ErrorKind::NotFound)),
        (StopReason::Attempts, 3),
        "a rule also replaces a built-in rule"
    );
}

#[test]
fn a_rule_added_to_a_clone_does_not_affect_the_original() {
    let plain = Retrier::new(POLICY);
    let strict = plain.clone().when(|_: &Api| false);
    assert_eq!(
        (end(&strict, || Api::Busy).0, end(&plain, || Api::Busy).0),
        (StopReason::Permanent, StopReason::Attempts)
    );
}

#[test]
fn a_retrier_and_its_clones_share_one_budget() {
    let budget = Arc::new(RecordingBudget::new(5));
    let retrier = Retrier::new(POLICY).shared_guard(budget.clone());
    let named = retrier.clone().named("another");
    let fails = || Err::<(), _>(Fail::TRANSIENT);
    let stop = |result: Result<(), Error<Fail>>| result.unwrap_err().stop_reason();
    assert_eq!(stop(retrier.blocking(fails)), StopReason::Attempts);
    assert_eq!(stop(named.blocking(fails)), StopReason::Attempts);
    assert_eq!(stop(retrier.blocking(fails)), StopReason::BUDGET, "the budget granted five retries");
    assert_eq!(stop(named.blocking(fails)), StopReason::BUDGET);
    let other = Retrier::new(POLICY).shared_guard(budget.clone());
    assert_eq!(stop(other.blocking(fails)), StopReason::BUDGET);
    assert_eq!(stop(Retrier::new(POLICY).budget(RecordingBudget::new(1)).blocking(fails)), StopReason::BUDGET);
    assert_eq!((budget.snapshot().retries_left, budget.in_flight()), (0, 0));
}

#[test]
fn a_retrier_and_its_clones_share_one_breaker() {
    let breaker = Arc::new(RecordingBreaker::new(3, Duration::from_secs(1 << 30)));
    let retrier = Retrier::new(POLICY).shared_guard(breaker.clone());
    let error = retrier.blocking(|| Err::<(), _>(Fail::TRANSIENT)).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Attempts, 3));
    let error = retrier.clone().blocking(|| Ok::<_, Fail>(())).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::BREAKER, 0));
    let error =
        Retrier::new(POLICY).breaker(RecordingBreaker::open(Duration::MAX)).blocking(|| Ok::<_, Fail>(())).unwrap_err();
    assert_eq!(error.stop_reason(), StopReason::BREAKER);
}

#[test]
fn the_outcome_of_each_attempt_is_recorded_with_the_guards() {
    let (budget, breaker) = (Arc::new(RecordingBudget::new(9)), Arc::new(RecordingBreaker::new(9, ms(1))));
    let retrier = guarded(POLICY, &budget, &breaker);
    let mut outcomes = [Outcome::NotProcessed, Outcome::TRANSIENT].into_iter();
    let operation = || outcomes.next().map_or(Ok(7), |outcome| Err(Fail(outcome)));
    assert_eq!(retrier.classify(Fail::outcome).blocking(operation).into_inner(), Ok(7));
    // The immediate repeat uses the same permits, and no guard is told of the attempt before it.
    for recorded in [budget.snapshot().recorded, breaker.snapshot().recorded] {
        assert_eq!(recorded, [Outcome::TRANSIENT, Outcome::Success]);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_retrier_can_be_configured_individually() {
    let retrier = Retrier::new(POLICY).when(|error: &Api| *error == Api::Busy);
    let report = retrier.run(async || Err::<(), _>(Api::Gone)).with_report().await;
    assert_eq!((report.stop_reason(), report.attempts), (Some(StopReason::Permanent), 1));
    let call =
        retrier.run(async || Ok::<_, Fail>(7)).validate(|value| if value > 7 { Ok(()) } else { Err(Fail::TRANSIENT) });
    assert_eq!(call.with_inner_error().await, Err(Fail::TRANSIENT));
    let hangs = async || core::future::pending::<Result<(), Fail>>().await;
    let start = tokio::time::Instant::now();
    assert_eq!(retrier.run(hangs).within(ms(30)).await.unwrap_err().stop_reason(), StopReason::Deadline);
    assert_eq!(
        retrier.run(hangs).cancelled_by(tokio::time::sleep(ms(20))).await.unwrap_err().stop_reason(),
        StopReason::Cancelled
    );
    assert_eq!(start.elapsed(), ms(50));
    let report = retrier.blocking_call(|attempt| Ok::<_, Fail>(attempt.number)).with_report().run();
    assert_eq!((report.attempts, report.result), (1, Ok(1)));
}

#[test]
fn a_changed_policy_shares_everything_else() {
    let recorder = Recorder::new();
    let (budget, breaker) = (Arc::new(RecordingBudget::new(9)), Arc::new(RecordingBreaker::new(99, ms(1))));
    let api = guarded(POLICY, &budget, &breaker).named("api").when(|_: &Fail| true).on_event(recorder.listener());
    let twice = api.with(|policy| policy.max_attempts(2)).unwrap();
    assert_eq!((end(&twice, || Fail(Outcome::Permanent)), api.policy()), ((StopReason::Attempts, 2), &POLICY));
    assert_eq!((budget.snapshot().retries_left, breaker.snapshot().recorded.len()), (6, 6), "three calls of one retry");
    assert!(recorder.events().iter().all(|event| event.target == "api" && event.max_attempts.unwrap().get() == 2));
    assert_eq!(recorder.events().len(), 6);

    let error = api.with(|policy| policy.max_attempts(0)).unwrap_err();
    assert_eq!(error.problems().count(), 1);
}

// A [`Strategy`](stagger::machine::Strategy) computes the delays of every entry point, and nothing else changes.

const NO_DELAY: Policy = policy!(zero().max_attempts(4));

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
        assert_eq!(actions(Retrier::new(NO_DELAY).strategy(growing), run, Fail::TRANSIENT), want, "{name}");
    }
}

#[test]
fn a_strategy_without_a_further_delay_ends_the_call() {
    let one = |retry: &RetryContext| Some(ms(5)).filter(|_| retry.number == 1);
    for (name, run) in RETRYING.into_iter().chain(TICKERS) {
        let got = actions(Retrier::new(NO_DELAY).strategy(one), run, Fail::TRANSIENT);
        assert_eq!(got, [scheduled(5), Action::Stop(StopReason::Exhausted)], "{name}");
    }
}

#[test]
fn limits_and_guards_apply_to_the_delays_of_a_strategy() {
    let slow = |_: &RetryContext| Some(ms(100));
    let limited = Retrier::new(policy!(zero().unlimited_attempts().max_elapsed(ms(250)))).strategy(slow);
    let spent = Retrier::new(NO_DELAY).strategy(slow).budget(Tokens::builder().capacity(10).build().unwrap());
    for (name, run) in RETRYING {
        let got = actions(limited.clone(), run, Fail::TRANSIENT);
        assert_eq!(got, [scheduled(100), scheduled(100), Action::Stop(StopReason::Elapsed)], "{name}");
    }
    let (_, run) = RETRYING[0];
    assert_eq!(
        actions(spent, run, Fail::TRANSIENT),
        [scheduled(100), scheduled(100), Action::Stop(StopReason::BUDGET)]
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
    let retrier = Retrier::new(NO_DELAY).strategy(record).classify(Fail::outcome);
    for _ in 0..100 {
        let throttled = async || Err::<(), _>(Fail(Outcome::throttled(None)));
        block_on(retrier.run_on(NoSleep, throttled)).unwrap_err();
    }
    let seen = SEEN.lock().unwrap();
    assert!(seen.iter().all(|retry| retry.kind == FailureKind::Throttled));
    assert_eq!(seen.iter().map(|retry| retry.random).collect::<HashSet<_>>().len(), 300);
}
