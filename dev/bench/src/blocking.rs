//! Section B: a blocking call that succeeds on the first attempt.

#[cfg(feature = "peers")]
mod peers;

use core::hint::black_box;
use core::time::Duration;

use stagger::blocking::retry;
use stagger::{Policy, policy};

use crate::case::{Case, Role, Table};
use crate::delay::FullJitter;
use crate::operation::{Failure, SUCCESS, Script, repeat};

/// Returns the rows of the table.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor_cases(),
        stagger_cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}

// The call itself, and the lower bound for the cost of retries around it.

/// Returns the hand-written rows.
fn floor_cases() -> Vec<Case> {
    vec![
        Case::work(Table::Blocking, Role::Bare, "direct call", direct),
        Case::work(Table::Blocking, Role::Floor, "retries in a cold function", cold)
            .note("builds the policy only on failure"),
    ]
}

fn direct(iterations: u64) {
    repeat(iterations, &SUCCESS, Script::attempt);
}

fn cold(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| script.attempt().or_else(|failure| again(script, failure)));
}

#[cold]
#[inline(never)]
fn again(script: &Script, mut failure: Failure) -> Result<u64, Failure> {
    let delays = FullJitter::new(7, Duration::from_millis(100), Duration::from_secs(30));
    for delay in delays.take(3) {
        std::thread::sleep(delay);
        match script.attempt() {
            Ok(value) => return Ok(value),
            Err(next) => failure = next,
        }
    }
    Err(failure)
}

// The cost that stagger adds to a blocking call that succeeds on the first attempt.

const ONE_LINER: &str = "retry(&POLICY, …), const policy";

const POLICY: Policy = policy!(exponential(ms(100), secs(30)).max_attempts(4));

/// Returns the rows of this project.
fn stagger_cases() -> Vec<Case> {
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
