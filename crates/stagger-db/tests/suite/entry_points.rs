//! The rules of this crate in a retrier with a name, a listener and operator controls.

use core::error::Error;

use stagger::control::RetryControls;
use stagger::observe::{Action, EventError};
use stagger::testing::Recorder;
use stagger::{OperationError, Outcome, Policy, Retrier, StopReason, policy};

const POLICY: Policy = policy!(zero().max_attempts(3));

/// Returns the targets, attempts and stop reasons of the events of a call that always fails, under these controls.
fn events<E>(rule: fn(&E) -> Outcome, error: fn() -> E, line: &str) -> Vec<(String, u32, Option<StopReason>)>
where
    E: Error + EventError + OperationError<Inner = E>,
{
    let (controls, recorder) = (RetryControls::new(), Recorder::new());
    controls.apply(line).unwrap();
    let retrier = Retrier::new(POLICY).classify(rule).named("db").controls(&controls).on_event(recorder.listener());
    retrier.blocking(|| Err::<(), _>(error())).unwrap_err();
    let stop = |action| if let Action::Stop(stop) = action { Some(stop) } else { None };
    recorder.events().into_iter().map(|event| (event.target, event.attempt, stop(event.action))).collect()
}

fn check<E>(rule: fn(&E) -> Outcome, transient: fn() -> E, permanent: fn() -> E)
where
    E: Error + EventError + OperationError<Inner = E>,
{
    let db = |attempt, stop| ("db".to_owned(), attempt, stop);
    let all = [db(1, None), db(2, None), db(3, Some(StopReason::Attempts))];
    assert_eq!(events(rule, transient, "other=no-retries"), all);
    assert_eq!(events(rule, transient, "db=no-retries"), [db(1, Some(StopReason::Guard("control")))]);
    assert_eq!(events(rule, permanent, "other=no-retries"), [db(1, Some(StopReason::Permanent))]);
}

#[cfg(feature = "redis")]
#[test]
fn operator_controls_and_listeners_apply_to_calls_with_the_rule_for_redis() {
    use redis::ErrorKind::{AuthenticationFailed, MasterNameNotFoundBySentinel};
    check(
        stagger_db::redis,
        || (MasterNameNotFoundBySentinel, "no master").into(),
        || (AuthenticationFailed, "wrong password").into(),
    );
}

#[cfg(feature = "sqlx")]
#[test]
fn operator_controls_and_listeners_apply_to_calls_with_the_rule_for_sqlx() {
    check(stagger_db::sqlx, || sqlx::Error::PoolTimedOut, || sqlx::Error::RowNotFound);
}
