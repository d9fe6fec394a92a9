//! The cost that stagger adds to a blocking call that succeeds on the first attempt.

use core::hint::black_box;

use stagger::blocking::retry;
use stagger::{Policy, policy};

use crate::case::{Case, Role, Table};
use crate::operation::{SUCCESS, repeat};

/// The row of the goals.
pub(crate) const ONE_LINER: &str = "retry(&POLICY, …), const policy";

const POLICY: Policy = policy!(exponential(ms(100), secs(30)).max_attempts(4));

/// Returns the rows of this project.
pub(super) fn cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::Blocking, Role::Stagger, name, run);
    vec![
        row(ONE_LINER, constant),
        row("retry(&policy, …), policy built at run time", at_run_time),
        row("retry(&POLICY, …).with_report()", report).note("reads the clock, as a report includes the elapsed time"),
    ]
}

fn constant(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| retry(&POLICY, || script.attempt()).run());
}

fn at_run_time(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| retry(black_box(&POLICY), || script.attempt()).run());
}

fn report(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| retry(&POLICY, || script.attempt()).with_report().run());
}
