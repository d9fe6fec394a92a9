//! On tokio, with delays of zero.

use core::time::Duration;

use backon::{ConstantBuilder, Retryable};
use tokio::runtime::Runtime;
use tower::{Layer, Service};

use crate::case::{Case, Role, Table};
use crate::failures::{attempt, on_both_clocks};
use crate::operation::repeat_on;
use crate::operation::{Failure, THREE_FAILURES};
use crate::tower_stack::BackoffAndBudget;

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut rows = |pair: [Case; 2]| cases.extend(pair);
    rows(on_both_clocks!(Role::Peer, "backon", backon, ""));
    rows(on_both_clocks!(Role::Peer, "tokio-retry", tokio_retry, ""));
    rows(on_both_clocks!(Role::Peer, "tokio-retry2", tokio_retry2, ""));
    rows(on_both_clocks!(Role::Peer, "tryhard", tryhard, ""));
    rows(on_both_clocks!(Role::Peer, "backoff", backoff, ""));
    rows(on_both_clocks!(Role::Peer, "mulligan", mulligan, ""));
    rows(on_both_clocks!(Role::Peer, "tower", tower, "Retry with a backoff and a budget"));
    rows(on_both_clocks!(Role::Peer, "tower-resilience", tower_resilience, ""));
    cases.push(Case::absent(
        Table::FailuresTokio,
        "again",
        "sleeps on its own thread, which a paused clock does not affect",
    ));
    cases.push(
        Case::wait(Table::FailuresTokioReal, Role::Peer, "again", |iterations| {
            again(iterations, &crate::operation::real());
        })
        .note("sleeps on its own thread"),
    );
    cases
}

fn backon(iterations: u64, runtime: &Runtime) {
    const BUILDER: ConstantBuilder = ConstantBuilder::new().with_delay(Duration::ZERO);
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        Retryable::retry(move || attempt::<Failure>(script), BUILDER)
    });
}

fn tokio_retry(iterations: u64, runtime: &Runtime) {
    use tokio_retry::strategy::FixedInterval;

    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        let delays = FixedInterval::from_millis(0).take(3);
        tokio_retry::Retry::start(delays, move || attempt::<Failure>(script))
    });
}

fn tokio_retry2(iterations: u64, runtime: &Runtime) {
    use tokio_retry2::strategy::FixedInterval;

    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        let delays = FixedInterval::from_millis(0).take(3);
        tokio_retry2::Retry::spawn(delays, move || attempt::<tokio_retry2::RetryError<Failure>>(script))
    });
}

fn tryhard(iterations: u64, runtime: &Runtime) {
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        tryhard::retry_fn(move || attempt::<Failure>(script)).retries(3)
    });
}

fn backoff(iterations: u64, runtime: &Runtime) {
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        backoff::future::retry(backoff::backoff::Zero {}, move || attempt::<backoff::Error<Failure>>(script))
    });
}

fn mulligan(iterations: u64, runtime: &Runtime) {
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        mulligan::until_ok().stop_after(3).execute(move || attempt::<Failure>(script))
    });
}

fn tower(iterations: u64, runtime: &Runtime) {
    // Its backoff rejects a maximum of zero. With a minimum of zero, every delay is zero.
    let policy = BackoffAndBudget::new(Duration::ZERO, Duration::from_millis(1), 0.0);
    let service = tower::service_fn(|()| attempt::<Failure>(&THREE_FAILURES));
    let mut service = tower::retry::Retry::new(policy, service);
    repeat_on(runtime, iterations, &THREE_FAILURES, |_| service.call(()));
}

fn tower_resilience(iterations: u64, runtime: &Runtime) {
    let layer = tower_resilience_retry::RetryLayer::<(), u64, Failure>::builder()
        .max_attempts(4)
        .fixed_backoff(Duration::ZERO)
        .build();
    let service = tower::service_fn(|()| attempt::<Failure>(&THREE_FAILURES));
    let mut service = layer.layer(service);
    repeat_on(runtime, iterations, &THREE_FAILURES, |_| service.call(()));
}

fn again(iterations: u64, runtime: &Runtime) {
    let policy = again::RetryPolicy::fixed(Duration::ZERO).with_max_retries(3);
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        let policy = policy.clone();
        async move { policy.retry(|| attempt::<Failure>(script)).await }
    });
}
