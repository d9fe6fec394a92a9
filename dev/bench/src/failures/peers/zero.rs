//! Blocking, without delays, in the cheapest way that each crate supports.

use core::time::Duration;

use backon::{BlockingRetryable, ConstantBuilder};

use crate::case::{Case, Role, Table};
use crate::operation::{THREE_FAILURES, repeat};

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::FailuresZero, Role::Peer, name, run);
    vec![row("retry", retry), row("backon", backon), row("mulligan", mulligan), row("backoff", backoff)]
}

fn retry(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| retry::retry(retry::delay::NoDelay.take(3), || script.attempt()));
}

fn backon(iterations: u64) {
    const BUILDER: ConstantBuilder = ConstantBuilder::new().with_delay(Duration::ZERO);
    repeat(iterations, &THREE_FAILURES, |script| BlockingRetryable::retry(|| script.attempt(), BUILDER).call());
}

fn mulligan(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| mulligan::until_ok().stop_after(3).execute_sync(|| script.attempt()));
}

fn backoff(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| {
        backoff::retry(backoff::backoff::Zero {}, || script.attempt().map_err(backoff::Error::transient))
    });
}
