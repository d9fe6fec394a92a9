//! The cost that stagger adds to an async call that succeeds on the first attempt.

use core::future::Future;
use core::hint::black_box;

use stagger::{Policy, policy};

use super::inner::{await_each, poll_once, sizes_of, small};
use crate::case::{Case, Role, Table};
use crate::operation::{Failure, SUCCESS, repeat};

/// The row of the goals.
pub(crate) const ONE_LINER: &str = "retry(&POLICY, …), const policy";

const AT_RUN_TIME: &str = "retry(&policy, …), policy built at run time";

const POLICY: Policy = policy!(exponential(ms(100), secs(30)).max_attempts(4));

/// Returns the rows of this project.
pub(super) fn cases() -> Vec<Case> {
    let row = |table, name, run| Case::work(table, Role::Stagger, name, run);
    vec![
        row(Table::Future, ONE_LINER, constant).sized(|| sizes_of!(retry)),
        row(Table::Future, AT_RUN_TIME, at_run_time).sized(|| sizes_of!(retry)),
        row(Table::Awaited, ONE_LINER, |n| await_each(n, |script| retry(move || small(script)))),
        row(Table::Awaited, AT_RUN_TIME, |n| {
            await_each(n, |script| stagger::retry(black_box(&POLICY), move || small::<Failure>(script)));
        }),
    ]
}

fn retry<F, Fut>(attempt: F) -> impl Future<Output = Result<u64, Failure>>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<u64, Failure>>,
{
    stagger::retry(&POLICY, attempt)
}

fn constant(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| poll_once(retry(|| small(script))));
}

fn at_run_time(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| poll_once(stagger::retry(black_box(&POLICY), || small::<Failure>(script))));
}
