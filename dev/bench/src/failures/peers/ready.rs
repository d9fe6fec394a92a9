//! Async, exponential with jitter, with a sleeper that is ready immediately.

use core::time::Duration;

use backon::{ExponentialBuilder, Retryable};

use super::{BASE, CAP};
use crate::case::{Case, Role, Table};
use crate::failures::{attempt, sleep_ready};
use crate::future::poll_once;
use crate::operation::{Failure, THREE_FAILURES, repeat};

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::FailuresReady, Role::Peer, name, run);
    vec![
        row("backon", backon),
        row("backoff", backoff).note("reads the clock"),
        Case::absent(
            Table::FailuresReady,
            "tokio-retry, tokio-retry2, tryhard, mulligan, again, tower, tower-resilience",
            "the sleep cannot be replaced",
        ),
    ]
}

fn backon(iterations: u64) {
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

fn backoff(iterations: u64) {
    use backoff::backoff::Backoff;

    let prototype: backoff::ExponentialBackoff =
        backoff::ExponentialBackoffBuilder::new().with_initial_interval(BASE).with_max_interval(CAP).build();
    repeat(iterations, &THREE_FAILURES, |script| {
        let mut policy = prototype.clone();
        policy.reset();
        poll_once(backoff::future::Retry::new(ReadyAtOnce, policy, |_: Failure, _: Duration| {}, || attempt(script)))
    });
}
