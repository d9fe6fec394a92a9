//! The cost of other crates if three attempts fail.

use core::time::Duration;

use backon::{BlockingRetryable, ConstantBuilder, ExponentialBuilder, Retryable};
use tokio::runtime::Runtime;
use tower::{Layer, Service};

use crate::case::{Case, Role, Table};
use crate::failures::{attempt, on_both_clocks, sleep_ready, use_delay};
use crate::future::poll_once;
use crate::operation::{Failure, THREE_FAILURES, repeat, repeat_on};
use crate::tower_stack::BackoffAndBudget;

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(30);

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    [blocking_cases(), zero_cases(), ready_cases(), on_tokio_cases()].concat()
}

// Blocking, exponential with jitter, with a base of zero or a sleep that returns immediately.
fn blocking_cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::FailuresBlocking, Role::Peer, name, run);
    vec![
        row("retry", blocking_retry).note("base of 0"),
        row("backon", blocking_backon).note("base of 0"),
        row("backon, sleep replaced", blocking_backon_sleepless),
        row("mulligan", blocking_mulligan).note("base of 0"),
        row("backoff", blocking_backoff).note("base of 0; reads the clock"),
        Case::absent(Table::FailuresBlocking, "the other crates", "async only, or compute delays only"),
    ]
}

fn blocking_retry(iterations: u64) {
    use retry::delay::{Exponential, jitter};

    repeat(iterations, &THREE_FAILURES, |script| {
        let delays = Exponential::from_millis(0).map(jitter).take(3);
        retry::retry(delays, || script.attempt())
    });
}

fn blocking_backon(iterations: u64) {
    const BUILDER: ExponentialBuilder = ExponentialBuilder::new().with_jitter().with_min_delay(Duration::ZERO);
    repeat(iterations, &THREE_FAILURES, |script| BlockingRetryable::retry(|| script.attempt(), BUILDER).call());
}

fn blocking_backon_sleepless(iterations: u64) {
    const BUILDER: ExponentialBuilder =
        ExponentialBuilder::new().with_jitter().with_min_delay(BASE).with_max_delay(CAP);
    repeat(iterations, &THREE_FAILURES, |script| {
        BlockingRetryable::retry(|| script.attempt(), BUILDER).sleep(use_delay).call()
    });
}

fn blocking_mulligan(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| {
        mulligan::until_ok().stop_after(3).exponential(Duration::ZERO).full_jitter().execute_sync(|| script.attempt())
    });
}

fn blocking_backoff(iterations: u64) {
    let prototype: backoff::ExponentialBackoff =
        backoff::ExponentialBackoffBuilder::new().with_initial_interval(Duration::ZERO).build();
    repeat(iterations, &THREE_FAILURES, |script| {
        backoff::retry(prototype.clone(), || script.attempt().map_err(backoff::Error::transient))
    });
}

// Blocking, without delays, in the cheapest way that each crate supports.
fn zero_cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::FailuresZero, Role::Peer, name, run);
    vec![
        row("retry", zero_retry),
        row("backon", zero_backon),
        row("mulligan", zero_mulligan),
        row("backoff", zero_backoff),
    ]
}

fn zero_retry(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| retry::retry(retry::delay::NoDelay.take(3), || script.attempt()));
}

fn zero_backon(iterations: u64) {
    const BUILDER: ConstantBuilder = ConstantBuilder::new().with_delay(Duration::ZERO);
    repeat(iterations, &THREE_FAILURES, |script| BlockingRetryable::retry(|| script.attempt(), BUILDER).call());
}

fn zero_mulligan(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| mulligan::until_ok().stop_after(3).execute_sync(|| script.attempt()));
}

fn zero_backoff(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| {
        backoff::retry(backoff::backoff::Zero {}, || script.attempt().map_err(backoff::Error::transient))
    });
}

// Async, exponential with jitter, with a sleeper that is ready immediately.
fn ready_cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::FailuresReady, Role::Peer, name, run);
    vec![
        row("backon", ready_backon),
        row("backoff", ready_backoff).note("reads the clock"),
        Case::absent(
            Table::FailuresReady,
            "tokio-retry, tokio-retry2, tryhard, mulligan, again, tower, tower-resilience",
            "the sleep cannot be replaced",
        ),
    ]
}

fn ready_backon(iterations: u64) {
    const BUILDER: ExponentialBuilder =
        ExponentialBuilder::new().with_jitter().with_min_delay(BASE).with_max_delay(CAP);
    repeat(iterations, &THREE_FAILURES, |script| {
        let retry = Retryable::retry(|| attempt::<Failure>(script), BUILDER);
        poll_once(retry.sleep(sleep_ready))
    });
}

struct ReadyAtOnce;

impl backoff::future::Sleeper for ReadyAtOnce {
    type Sleep = core::future::Ready<()>;

    fn sleep(&self, delay: Duration) -> Self::Sleep {
        sleep_ready(delay)
    }
}

fn ready_backoff(iterations: u64) {
    use backoff::backoff::Backoff;

    let prototype: backoff::ExponentialBackoff =
        backoff::ExponentialBackoffBuilder::new().with_initial_interval(BASE).with_max_interval(CAP).build();
    repeat(iterations, &THREE_FAILURES, |script| {
        let mut policy = prototype.clone();
        policy.reset();
        poll_once(backoff::future::Retry::new(ReadyAtOnce, policy, |_: Failure, _: Duration| {}, || attempt(script)))
    });
}

// On tokio, with delays of zero.
fn on_tokio_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut rows = |pair: [Case; 2]| cases.extend(pair);
    rows(on_both_clocks!(Role::Peer, "backon", backon_on_tokio, ""));
    rows(on_both_clocks!(Role::Peer, "tokio-retry", tokio_retry, ""));
    rows(on_both_clocks!(Role::Peer, "tokio-retry2", tokio_retry2, ""));
    rows(on_both_clocks!(Role::Peer, "tryhard", tryhard_on_tokio, ""));
    rows(on_both_clocks!(Role::Peer, "backoff", backoff_on_tokio, ""));
    rows(on_both_clocks!(Role::Peer, "mulligan", mulligan_on_tokio, ""));
    rows(on_both_clocks!(Role::Peer, "tower", tower_on_tokio, "Retry with a backoff and a budget"));
    rows(on_both_clocks!(Role::Peer, "tower-resilience", tower_resilience_on_tokio, ""));
    cases.push(Case::absent(
        Table::FailuresTokio,
        "again",
        "sleeps on its own thread, which a paused clock does not affect",
    ));
    cases.push(
        Case::wait(Table::FailuresTokioReal, Role::Peer, "again", |iterations| {
            again_on_tokio(iterations, &crate::operation::real());
        })
        .note("sleeps on its own thread"),
    );
    cases
}

fn backon_on_tokio(iterations: u64, runtime: &Runtime) {
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

fn tryhard_on_tokio(iterations: u64, runtime: &Runtime) {
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        tryhard::retry_fn(move || attempt::<Failure>(script)).retries(3)
    });
}

fn backoff_on_tokio(iterations: u64, runtime: &Runtime) {
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        backoff::future::retry(backoff::backoff::Zero {}, move || attempt::<backoff::Error<Failure>>(script))
    });
}

fn mulligan_on_tokio(iterations: u64, runtime: &Runtime) {
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        mulligan::until_ok().stop_after(3).execute(move || attempt::<Failure>(script))
    });
}

fn tower_on_tokio(iterations: u64, runtime: &Runtime) {
    // Its backoff rejects a maximum of zero. With a minimum of zero, every delay is zero.
    let policy = BackoffAndBudget::new(Duration::ZERO, Duration::from_millis(1), 0.0);
    let service = tower::service_fn(|()| attempt::<Failure>(&THREE_FAILURES));
    let mut service = tower::retry::Retry::new(policy, service);
    repeat_on(runtime, iterations, &THREE_FAILURES, |_| service.call(()));
}

fn tower_resilience_on_tokio(iterations: u64, runtime: &Runtime) {
    let layer = tower_resilience_retry::RetryLayer::<(), u64, Failure>::builder()
        .max_attempts(4)
        .fixed_backoff(Duration::ZERO)
        .build();
    let service = tower::service_fn(|()| attempt::<Failure>(&THREE_FAILURES));
    let mut service = layer.layer(service);
    repeat_on(runtime, iterations, &THREE_FAILURES, |_| service.call(()));
}

fn again_on_tokio(iterations: u64, runtime: &Runtime) {
    let policy = again::RetryPolicy::fixed(Duration::ZERO).with_max_retries(3);
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        let policy = policy.clone();
        async move { policy.retry(|| attempt::<Failure>(script)).await }
    });
}
