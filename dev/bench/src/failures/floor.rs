//! The attempts themselves, and the lower bound for the cost of retries between them.

use core::future::Future;
use core::hint::black_box;
use core::iter::Take;
use core::time::Duration;

use tokio::runtime::Runtime;

use super::drive::{attempt, on_both_clocks, sleep_ready};
use crate::case::{Case, Role, Table};
use crate::delay::FullJitter;
use crate::future::poll_once;
use crate::operation::{Failure, Script, THREE_FAILURES, repeat};
use crate::tokio_runtime::repeat_on;

const BARE: &str = "four bare attempts";
const LOOP: &str = "inline loop";

/// Returns the hand-written rows.
pub(super) fn cases() -> Vec<Case> {
    let work = Case::work;
    let mut cases = vec![
        work(Table::FailuresBlocking, Role::Bare, BARE, blocking_bare),
        work(Table::FailuresZero, Role::Bare, BARE, blocking_bare),
        work(Table::FailuresZero, Role::Floor, LOOP, blocking_at_once).note("counts attempts, draws no delay"),
        work(Table::FailuresBlocking, Role::Floor, LOOP, blocking)
            .note("draws each delay, sleeps only if it is above zero"),
        work(Table::FailuresReady, Role::Bare, BARE, ready_bare),
        work(Table::FailuresReady, Role::Floor, LOOP, ready_sleeper).note("draws each delay"),
    ];
    cases.extend(on_both_clocks!(Role::Bare, BARE, tokio_bare, ""));
    cases.extend(on_both_clocks!(Role::Floor, LOOP, tokio_sleep, "no timer if the delay is zero"));
    cases
}

fn blocking_bare(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| {
        loop {
            if let Ok(value) = script.attempt() {
                return value;
            }
        }
    });
}

fn blocking(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| script.attempt().or_else(|failure| again(script, failure)));
}

#[cold]
#[inline(never)]
fn again(script: &Script, mut failure: Failure) -> Result<u64, Failure> {
    for delay in delays(black_box(Duration::ZERO)) {
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
        match script.attempt() {
            Ok(value) => return Ok(value),
            Err(next) => failure = next,
        }
    }
    Err(failure)
}

fn blocking_at_once(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| {
        let mut left = black_box(3);
        loop {
            match script.attempt() {
                Ok(value) => return Ok(value),
                Err(failure) if left == 0 => return Err(failure),
                Err(_) => left -= 1,
            }
        }
    });
}

fn ready_bare(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| poll_once(without_delays(|| attempt::<Failure>(script))));
}

fn ready_sleeper(iterations: u64) {
    repeat(iterations, &THREE_FAILURES, |script| {
        let base = black_box(Duration::from_millis(100));
        poll_once(with_delays(|| attempt::<Failure>(script), base, sleep_ready))
    });
}

fn tokio_bare(iterations: u64, runtime: &Runtime) {
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| without_delays(move || attempt::<Failure>(script)));
}

fn tokio_sleep(iterations: u64, runtime: &Runtime) {
    repeat_on(runtime, iterations, &THREE_FAILURES, |script| {
        let base = black_box(Duration::ZERO);
        with_delays(
            move || attempt::<Failure>(script),
            base,
            async |delay| {
                if !delay.is_zero() {
                    tokio::time::sleep(delay).await;
                }
            },
        )
    });
}

/// Makes attempts until one succeeds, without delays.
async fn without_delays<F, Fut, T, E>(mut attempt: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    loop {
        if let Ok(value) = attempt().await {
            return value;
        }
    }
}

/// Makes up to four attempts, with a sleep between them.
async fn with_delays<F, Fut, T, E>(mut attempt: F, base: Duration, sleep: impl AsyncFn(Duration)) -> Result<T, E>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let mut delays = delays(base);
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) => match delays.next() {
                None => return Err(error),
                Some(delay) => sleep(delay).await,
            },
        }
    }
}

fn delays(base: Duration) -> Take<FullJitter> {
    FullJitter::new(7, base, Duration::from_secs(30)).take(3)
}
