//! The cost of stagger if three attempts fail.

use stagger::{Policy, Seed, blocking, policy, time::SleepFn};
use tokio::runtime::Runtime;

use super::drive::{attempt, on_both_clocks, sleep_ready, use_delay};
use crate::case::{Case, Role, Table};
use crate::future::poll_once;
use crate::operation::{Failure, THREE_FAILURES, repeat};
use crate::tokio_runtime::repeat_on;

/// The rows of the goals.
pub(crate) const SEEDED: &str = "full jitter, seeded";
const UNSEEDED: &str = "full jitter";

/// The row of the goal for calls without delays.
pub(crate) const ZERO: &str = "zero, seeded";

const POLICY: Policy = policy!(exponential(ms(100), secs(30)).max_attempts(4));
const NO_DELAY: Policy = policy!(zero().max_attempts(4));
const SEED: Seed = Seed::new(7);

/// Returns the rows of this project.
pub(super) fn cases() -> Vec<Case> {
    let row = |table, name, run| Case::work(table, Role::Stagger, name, run);
    let unseeded = "seed from entropy and the wall clock";
    let mut cases = vec![
        row(Table::FailuresBlocking, SEEDED, blocking_seeded).note("sleep replaced"),
        row(Table::FailuresBlocking, UNSEEDED, blocking_unseeded).note(unseeded),
        row(Table::FailuresZero, ZERO, zero_seeded),
        row(Table::FailuresZero, "zero", zero_unseeded).note(unseeded),
        row(Table::FailuresReady, SEEDED, ready_seeded),
        row(Table::FailuresReady, UNSEEDED, ready_unseeded).note(unseeded),
    ];
    cases.extend(on_both_clocks!(Role::Stagger, ZERO, tokio_seeded, ""));
    cases.extend(on_both_clocks!(Role::Stagger, "zero", tokio_unseeded, unseeded));
    cases
}

fn blocking_seeded(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| {
        blocking::retry(&POLICY, || script.attempt()).timer(SleepFn::new(use_delay)).seed(SEED).run()
    });
}

fn blocking_unseeded(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| {
        blocking::retry(&POLICY, || script.attempt()).timer(SleepFn::new(use_delay)).run()
    });
}

fn zero_seeded(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| blocking::retry(&NO_DELAY, || script.attempt()).seed(SEED).run());
}

fn zero_unseeded(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| blocking::retry(&NO_DELAY, || script.attempt()).run());
}

fn ready_seeded(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| {
        let retry = stagger::retry(&POLICY, || attempt::<Failure>(script));
        poll_once(retry.timer(SleepFn::new(sleep_ready)).seed(SEED))
    });
}

fn ready_unseeded(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| {
        let retry = stagger::retry(&POLICY, || attempt::<Failure>(script));
        poll_once(retry.timer(SleepFn::new(sleep_ready)))
    });
}

fn tokio_seeded(iterations: u64, runtime: &Runtime) {
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        stagger::retry(&NO_DELAY, move || attempt::<Failure>(script)).seed(SEED)
    });
}

fn tokio_unseeded(iterations: u64, runtime: &Runtime) {
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        stagger::retry(&NO_DELAY, move || attempt::<Failure>(script))
    });
}
