//! The cost that other crates add to a blocking call that succeeds on the first attempt.

use core::time::Duration;

use crate::case::{Case, Role, Table};
use crate::operation::{SUCCESS, repeat};

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(30);

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::Blocking, Role::Peer, name, run);
    vec![
        row("backon", backon),
        row("retry", retry),
        row("mulligan", mulligan),
        row("backoff", backoff).note("reads the clock"),
        Case::absent(Table::Blocking, "exponential-backoff", "computes delays only"),
        Case::absent(Table::Blocking, "retry-policies", "computes delays only"),
        Case::absent(
            Table::Blocking,
            "tokio-retry, tokio-retry2, again, tryhard, tower, tower-resilience, gax, aws",
            "async only",
        ),
    ]
}

fn backon(iterations: u64) {
    use backon::{BlockingRetryable, ExponentialBuilder};

    const BUILDER: ExponentialBuilder =
        ExponentialBuilder::new().with_jitter().with_min_delay(BASE).with_max_delay(CAP);
    repeat(iterations, &SUCCESS, |script| (|| script.attempt()).retry(BUILDER).call());
}

fn retry(iterations: u64) {
    use retry::delay::{Exponential, jitter};

    repeat(iterations, &SUCCESS, |script| {
        let delays = Exponential::from_millis(100).map(jitter).take(3);
        retry::retry(delays, || script.attempt())
    });
}

fn mulligan(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| {
        mulligan::until_ok()
            .stop_after(3)
            .max_delay(CAP)
            .exponential(BASE)
            .full_jitter()
            .execute_sync(|| script.attempt())
    });
}

fn backoff(iterations: u64) {
    let prototype: backoff::ExponentialBackoff =
        backoff::ExponentialBackoffBuilder::new().with_initial_interval(BASE).with_max_interval(CAP).build();
    repeat(iterations, &SUCCESS, |script| {
        backoff::retry(prototype.clone(), || script.attempt().map_err(backoff::Error::transient))
    });
}
