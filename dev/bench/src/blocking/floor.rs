//! The call itself, and the lower bound for the cost of retries around it.

use core::time::Duration;

use crate::case::{Case, Role, Table};
use crate::delay::FullJitter;
use crate::operation::{Failure, SUCCESS, Script, repeat};

/// Returns the hand-written rows.
pub(super) fn cases() -> Vec<Case> {
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
