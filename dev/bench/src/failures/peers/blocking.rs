//! Blocking, exponential with jitter, with a base of zero or a sleep that returns immediately.

use core::time::Duration;

use backon::{BlockingRetryable, ExponentialBuilder};

use super::{BASE, CAP};
use crate::case::{Case, Role, Table};
use crate::failures::use_delay;
use crate::operation::{THREE_FAILURES, repeat};

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::FailuresBlocking, Role::Peer, name, run);
    vec![
        row("retry", retry).note("base of 0"),
        row("backon", backon).note("base of 0"),
        row("backon, sleep replaced", backon_sleepless),
        row("mulligan", mulligan).note("base of 0"),
        row("backoff", backoff).note("base of 0; reads the clock"),
        Case::absent(Table::FailuresBlocking, "the other crates", "async only, or compute delays only"),
    ]
}

fn retry(iterations: u64) {
    use retry::delay::{Exponential, jitter};

    repeat(iterations, &THREE_FAILURES, |script| {
        let delays = Exponential::from_millis(0).map(jitter).take(3);
        retry::retry(delays, || script.attempt())
    });
}

fn backon(iterations: u64) {
    const BUILDER: ExponentialBuilder = ExponentialBuilder::new().with_jitter().with_min_delay(Duration::ZERO);
    repeat(iterations, &THREE_FAILURES, |script| BlockingRetryable::retry(|| script.attempt(), BUILDER).call());
}

fn backon_sleepless(iterations: u64) {
    const BUILDER: ExponentialBuilder =
        ExponentialBuilder::new().with_jitter().with_min_delay(BASE).with_max_delay(CAP);
    repeat(iterations, &THREE_FAILURES, |script| {
        BlockingRetryable::retry(|| script.attempt(), BUILDER).sleep(use_delay).call()
    });
}

fn mulligan(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| {
        mulligan::until_ok().stop_after(3).exponential(Duration::ZERO).full_jitter().execute_sync(|| script.attempt())
    });
}

fn backoff(iterations: u64) {
    let prototype: backoff::ExponentialBackoff =
        backoff::ExponentialBackoffBuilder::new().with_initial_interval(Duration::ZERO).build();
    repeat(iterations, &THREE_FAILURES, |script| {
        backoff::retry(prototype.clone(), || script.attempt().map_err(backoff::Error::transient))
    });
}
