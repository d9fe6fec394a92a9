//! The cost that other crates add to an async call that succeeds on the first attempt.

use core::future::Future;
use core::time::Duration;

use tower::{Layer, Service};

use super::{await_each, large, poll_once, sizes_of, small};
use crate::case::{Case, Role, Table};
use crate::measure::Sizes;
use crate::operation::{Failure, SUCCESS, repeat};
use crate::tower_stack::BackoffAndBudget;

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(30);

/// Creates the row of a crate in which one call creates the future.
macro_rules! row {
    ($name:literal, $retry:expr) => {
        Case::work(Table::Future, Role::Peer, $name, |iterations| {
            repeat(iterations, &SUCCESS, |script| poll_once($retry(|| small(script))));
        })
        .sized(|| sizes_of!($retry))
    };
}

/// Creates the same row for calls awaited in a task.
macro_rules! awaited {
    ($name:literal, $retry:expr) => {
        Case::work(Table::Awaited, Role::Peer, $name, |iterations| {
            await_each(iterations, |script| $retry(move || small(script)));
        })
    };
}

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    let absent = |name, why| Case::absent(Table::Future, name, why);
    vec![
        Case::work(Table::Future, Role::Peer, "again", again).sized(again_sizes),
        row!("backon", backon),
        row!("tryhard", tryhard),
        row!("tokio-retry", tokio_retry),
        row!("tokio-retry2", tokio_retry2),
        row!("backoff", backoff).note("reads the clock"),
        row!("mulligan", mulligan),
        Case::work(Table::Future, Role::Peer, "tower", tower)
            .sized(tower_sizes)
            .note("its retry service with a backoff and a budget"),
        Case::work(Table::Future, Role::Peer, "tower-resilience", tower_resilience).note("the future is boxed"),
        awaited!("backon", backon),
        awaited!("tryhard", tryhard),
        awaited!("tokio-retry", tokio_retry),
        absent("retry", "blocking only"),
        absent("google-cloud-gax", "its retry loop is not in its public API"),
        absent("aws-smithy-runtime", "its retry loop is part of its orchestrator"),
        absent("exponential-backoff, retry-policies", "compute delays only"),
    ]
}

fn backon<F, Fut>(attempt: F) -> impl Future<Output = Result<u64, Failure>>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<u64, Failure>>,
{
    use backon::{ExponentialBuilder, Retryable};

    attempt.retry(ExponentialBuilder::new().with_jitter().with_min_delay(BASE).with_max_delay(CAP))
}

fn tryhard<F, Fut>(attempt: F) -> impl Future<Output = Result<u64, Failure>>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<u64, Failure>>,
{
    tryhard::retry_fn(attempt).retries(3).exponential_backoff(BASE).max_delay(CAP)
}

fn tokio_retry<F, Fut>(attempt: F) -> impl Future<Output = Result<u64, Failure>>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<u64, Failure>>,
{
    use tokio_retry::strategy::{ExponentialBackoff, jitter};

    let strategy = ExponentialBackoff::from_millis(2).factor(50).max_delay(CAP);
    tokio_retry::Retry::start(strategy.map(jitter).take(3), attempt)
}

fn tokio_retry2<F, Fut>(attempt: F) -> impl Future<Output = Result<u64, Failure>>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<u64, tokio_retry2::RetryError<Failure>>>,
{
    use tokio_retry2::strategy::{ExponentialBackoff, jitter};

    let strategy = ExponentialBackoff::from_millis(2).factor(50).max_delay(CAP);
    tokio_retry2::Retry::spawn(strategy.map(jitter).take(3), attempt)
}

fn backoff<F, Fut>(attempt: F) -> impl Future<Output = Result<u64, Failure>>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<u64, backoff::Error<Failure>>>,
{
    let policy: backoff::ExponentialBackoff =
        backoff::ExponentialBackoffBuilder::new().with_initial_interval(BASE).with_max_interval(CAP).build();
    backoff::future::retry(policy, attempt)
}

fn mulligan<F>(attempt: F) -> impl Future<Output = Result<u64, Failure>>
where
    F: AsyncFn() -> Result<u64, Failure>,
{
    mulligan::until_ok().stop_after(3).max_delay(CAP).exponential(BASE).full_jitter().execute(attempt)
}

fn again_policy() -> again::RetryPolicy {
    again::RetryPolicy::exponential(BASE).with_jitter(true).with_max_delay(CAP).with_max_retries(3)
}

fn again(iterations: u64) {
    let policy = again_policy();
    repeat(iterations, &SUCCESS, |script| poll_once(policy.retry(|| small::<Failure>(script))));
}

fn again_sizes() -> Sizes {
    let policy = again_policy();
    Sizes::added(
        (&small::<Failure>(&SUCCESS), &policy.retry(|| small::<Failure>(&SUCCESS))),
        (&large::<Failure>(&SUCCESS), &policy.retry(|| large::<Failure>(&SUCCESS))),
    )
}

fn tower_policy() -> BackoffAndBudget {
    BackoffAndBudget::new(BASE, CAP, 0.99)
}

fn tower(iterations: u64) {
    let policy = tower_policy();
    let service = tower::service_fn(|()| small::<Failure>(&SUCCESS));
    let mut service = tower::retry::Retry::new(policy, service);
    repeat(iterations, &SUCCESS, |_| poll_once(service.call(())));
}

fn tower_sizes() -> Sizes {
    let small_service = tower::service_fn(|()| small::<Failure>(&SUCCESS));
    let large_service = tower::service_fn(|()| large::<Failure>(&SUCCESS));
    Sizes::added(
        (&small::<Failure>(&SUCCESS), &tower::retry::Retry::new(tower_policy(), small_service).call(())),
        (&large::<Failure>(&SUCCESS), &tower::retry::Retry::new(tower_policy(), large_service).call(())),
    )
}

fn tower_resilience(iterations: u64) {
    use tower_resilience_retry::{ExponentialRandomBackoff, RetryLayer};

    let backoff = ExponentialRandomBackoff::new(BASE, 0.5)
        // It rejects a factor outside 0 to 1.
        .expect("a valid constant")
        .max_interval(CAP);
    let layer = RetryLayer::<(), u64, Failure>::builder().max_attempts(4).backoff(backoff).build();
    let mut service = layer.layer(tower::service_fn(|()| small::<Failure>(&SUCCESS)));
    repeat(iterations, &SUCCESS, |_| poll_once(service.call(())));
}
