//! Section D: three failures, then a success.

#[cfg(feature = "peers")]
mod peers;

use core::future::{Future, Ready, ready};
use core::hint::black_box;
use core::iter::Take;
use core::time::Duration;

use stagger::time::SleepFn;
use stagger::{Policy, Seed, blocking, policy};
use tokio::runtime::Runtime;

use crate::case::{Case, Role, Table};
use crate::delay::FullJitter;
use crate::future::poll_once;
use crate::operation::repeat_on;
use crate::operation::{Failure, Script, THREE_FAILURES, repeat};

/// Returns the rows of the five tables.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor_cases(),
        stagger_cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}

// The attempts themselves, and the lower bound for the cost of retries between them.

const BARE: &str = "four bare attempts";
const LOOP: &str = "inline loop";

/// Returns the hand-written rows.
fn floor_cases() -> Vec<Case> {
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

// The cost of stagger if three attempts fail.

const SEEDED: &str = "full jitter, seeded";
const UNSEEDED: &str = "full jitter";

const ZERO: &str = "zero, seeded";

const POLICY: Policy = policy!(exponential(ms(100), secs(30)).max_attempts(4));
const NO_DELAY: Policy = policy!(zero().max_attempts(4));
const SEED: Seed = Seed::new(7);

/// Returns the rows of this project.
fn stagger_cases() -> Vec<Case> {
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

// Runs the cases of section D.

/// Makes an attempt in a future. `E` is the error type that the crate expects.
async fn attempt<E: From<Failure>>(script: &'static Script) -> Result<u64, E> {
    script.attempt().map_err(E::from)
}

/// Returns immediately in place of a blocking sleep, but forces the delay to be computed.
fn use_delay(delay: Duration) {
    black_box(&delay);
}

/// Returns a sleep that is ready immediately, but forces the delay to be computed.
fn sleep_ready(delay: Duration) -> Ready<()> {
    use_delay(delay);
    ready(())
}

/// Creates two rows for one `fn(u64, &Runtime)`: its CPU work on a paused clock, and its time on the real one.
macro_rules! on_both_clocks {
    ($role:expr, $name:expr, $run:expr, $note:expr) => {{
        use crate::case::{Case, Table};
        use crate::operation::{paused, real};
        [
            Case::work(Table::FailuresTokio, $role, $name, |iterations| {
                $run(iterations, &paused());
            })
            .note($note),
            Case::wait(Table::FailuresTokioReal, $role, $name, |iterations| {
                $run(iterations, &real());
            })
            .note($note),
        ]
    }};
}

use on_both_clocks;
