//! [`Retrier`]: rules and guards that all of its calls share.

use core::time::Duration;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use futures_lite::future::block_on;
use stagger::testing::{NoSleep, Recorder};
use stagger::{Error, Outcome, Policy, Retrier, RetryResultExt as _, StopReason, policy};

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
    let retrier = Retrier::new(POLICY).shared_budget(budget.clone());
    let named = retrier.clone().named("another");
    let fails = || Err::<(), _>(Fail::TRANSIENT);
    let stop = |result: Result<(), Error<Fail>>| result.unwrap_err().stop_reason();
    assert_eq!(stop(retrier.blocking(fails)), StopReason::Attempts);
    assert_eq!(stop(named.blocking(fails)), StopReason::Attempts);
    assert_eq!(stop(retrier.blocking(fails)), StopReason::Budget, "the budget granted five retries");
    assert_eq!(stop(named.blocking(fails)), StopReason::Budget);
    let other = Retrier::new(POLICY).shared_budget(budget.clone());
    assert_eq!(stop(other.blocking(fails)), StopReason::Budget);
    assert_eq!(stop(Retrier::new(POLICY).budget(RecordingBudget::new(1)).blocking(fails)), StopReason::Budget);
    assert_eq!((budget.snapshot().retries_left, budget.in_flight()), (0, 0));
}

#[test]
fn a_retrier_and_its_clones_share_one_breaker() {
    let breaker = Arc::new(RecordingBreaker::new(3, Duration::from_secs(1 << 30)));
    let retrier = Retrier::new(POLICY).shared_breaker(breaker.clone());
    let error = retrier.blocking(|| Err::<(), _>(Fail::TRANSIENT)).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Attempts, 3));
    let error = retrier.clone().blocking(|| Ok::<_, Fail>(())).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Breaker, 0));
    let error =
        Retrier::new(POLICY).breaker(RecordingBreaker::open(Duration::MAX)).blocking(|| Ok::<_, Fail>(())).unwrap_err();
    assert_eq!(error.stop_reason(), StopReason::Breaker);
}

#[test]
fn the_outcome_of_each_attempt_is_recorded_with_the_guards() {
    let (budget, breaker) = (Arc::new(RecordingBudget::new(9)), Arc::new(RecordingBreaker::new(9, ms(1))));
    let retrier = Retrier::new(POLICY).shared_budget(budget.clone()).shared_breaker(breaker.clone());
    let mut outcomes = [Outcome::NotProcessed, Outcome::TRANSIENT].into_iter();
    let operation = || outcomes.next().map_or(Ok(7), |outcome| Err(Fail(outcome)));
    assert_eq!(retrier.classify(Fail::outcome).blocking(operation).into_inner(), Ok(7));
    // The immediate repeat uses the same budget permit; the breaker counts it as an attempt.
    assert_eq!(budget.snapshot().recorded, [Outcome::TRANSIENT, Outcome::Success]);
    assert_eq!(breaker.snapshot().recorded, [Outcome::NotProcessed, Outcome::TRANSIENT, Outcome::Success]);
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
