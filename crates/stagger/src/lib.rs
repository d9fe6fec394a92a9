//! Retries that don't stampede: exponential backoff, jitter, retry budgets and circuit breakers for async and blocking
//! code.
//!
//! ```
//! use stagger::{Policy, policy};
//!
//! const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));
//!
//! # async fn fetch(_: &str) -> Result<String, std::io::Error> { Ok(String::from("page")) }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let url = "";
//! let page = stagger::retry(&POLICY, async || fetch(url).await).await?;
//! # assert_eq!(page, "page"); Ok::<(), std::io::Error>(()) }).unwrap();
//! ```
//!
//! | to … | use |
//! |---|---|
//! | retry one async call | [`retry`](fn@retry), or [`retry_with_timer`] on another timer |
//! | retry one blocking call | [`blocking::retry`] |
//! | share guards, rules and listeners between calls | [`Retrier`] |
//! | pass `&mut` state to the operation | [`Retrier::run_with`], or the loop form [`Retrier::call`] |
//! | classify an error inside the operation | [`Marked`] |
//! | convert the error of a call with `?`, whatever its type | [`RetryResultExt::boxed`] |
//! | keep a connection open | [`Reconnect`](crate::reconnect::Reconnect) |
//! | keep many pending retries on one task | [`queue::RetryQueue`] |
//! | send a batch and resend only its failed items | [`batch::Batch`] |
//! | repeat work on a schedule | [`Ticker`](crate::reconnect::Ticker), [`blocking::Ticker`] |
//! | repeat work periodically, out of phase with other processes | [`interval`], [`blocking::interval`] |
//! | send a second copy of a slow request | [`hedge`](fn@crate::hedge::hedge) |
//! | observe or disable guards, or throttle retries, at run time | [`control`] |
//! | port code from the Go package cenkalti/backoff | the crate `stagger-cenkalti` |
//! | test code that uses this crate | [`testing`] |
//! | compute the delays yourself, with every limit and guard | [`Retrier::strategy`] |
//! | write the loop yourself | [`Policy::delays`], or [`RetryMachine`] for a driver of your own |
//!
//! [`interval`]: crate::reconnect::interval
//! [`RetryMachine`]: crate::machine::RetryMachine
//!
//! Every decision is made in [`stagger_core`], whose policies, guards and state machines are re-exported here.
//! [`RetryMachine`] documents the order of the checks.
//!
//! # Writing the loop yourself
//!
//! Iterate over the delays of a policy, and sleep between attempts:
//!
//! ```
//! use stagger::{Policy, policy};
//!
//! const POLICY: Policy = policy!(exponential(ms(1), ms(10)).max_attempts(4));
//!
//! # let mut calls = 0; let mut call = || { calls += 1; if calls < 3 { Err("not yet") } else { Ok(calls) } };
//! let mut delays = POLICY.delays(stagger::seed());
//! let answer = loop {
//!     match (call(), delays.next()) {
//!         (Ok(answer), _) => break Ok(answer),
//!         (Err(error), None) => break Err(error),
//!         (Err(_), Some(delay)) => std::thread::sleep(delay),
//!     }
//! };
//! assert_eq!(answer, Ok(3));
//! ```
//!
//! # What it guarantees
//!
//! - The operation runs at least once unless the deadline has passed or a guard rejects it. It is called after
//!   the sleep, and its success is returned even if the call was cancelled in the meantime.
//! - A plain call, without guards, time limits, listeners or detailed output, that succeeds on the first attempt reads
//!   no clock, draws no random number and allocates nothing.
//! - Dropping a future stops the call immediately and releases the permits that it holds from its guards.
//! - A call inside an attempt of another call does not retry by default, so retries do not multiply: see [`scope`].
//! - The crate itself does not panic, and contains no `unsafe` code. Tokio panics if a call has to sleep
//!   [where it has no timer](time::Tokio#panics).
//!
//! # Features
//!
//! `tokio` (default), `async-io`, `futures-timer`, `queue` (with batches), `hedge`, `admission`, `serde`, `tracing`,
//! `metrics`, `stream`, `anyhow` and `eyre`. Each only adds items, except that the last two let errors be classified by
//! what a report holds.
//! Without `tokio`, [`retry`](fn@retry) is not available and the timer is passed explicitly, as in
//! [`retry_with_timer`].
//!
//! # Dependencies before 1.0
//!
//! The public interface contains types and traits of these. Each new minor version of one is incompatible with the one
//! before, so a release of this crate that moves to it is incompatible, too: it raises the minor version, from 1.0 on
//! the major version.
//!
//! | dependency | feature | in the interface |
//! |---|---|---|
//! | futures-core 0.3 | `stream` | `Stream` is implemented |
//!
//! `metrics` 0.24 and `tracing` 0.1 have no type in it. If the program's recorder is of another version of `metrics`,
//! nothing is recorded, and there is no error.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(feature = "admission", target_has_atomic = "64"))]
pub mod admission {
    //! Server-side admission control: admits clients at the rate the server can take, and gives the others a reserved
    //! time to return.

    pub use stagger_core::admission::{
        Admission, AdmissionBuilder, AdmissionControl, AdmissionError, AdmissionSnapshot, Admit, Reservation,
        ReservationToken, Secret,
    };

    pub use crate::time::entropy::random_secret;
}
mod call;
pub mod classify;
#[cfg(target_has_atomic = "64")]
pub mod control;
mod drive;
mod error;
#[cfg(feature = "hedge")]
pub mod hedge;
pub mod observe;
#[cfg(feature = "queue")]
pub mod queue;
pub mod reconnect;
mod retrier;
pub mod testing;
pub mod time;

/// Retry budgets, which limit the retries of all calls together.
///
/// The budgets of the core, each with what it limits and when to use it.
#[cfg(target_has_atomic = "64")]
#[doc(inline)]
pub use stagger_core::budget;

/// What budgets and breakers are: the interface of [guards](crate::guard::Guard), the permits that they grant,
/// [`Keyed`](crate::guard::Keyed), which has one guard per key, such as per host, the
/// [quiet period](crate::guard::QuietPeriod) and the [pacer](crate::guard::Pacer).
pub mod guard {
    #[doc(inline)]
    pub use stagger_core::guard::*;

    #[cfg(target_has_atomic = "64")]
    pub use crate::control::keyed::Keyed;
    #[cfg(target_has_atomic = "64")]
    #[doc(inline)]
    pub use stagger_core::pacer::{Pacer, PacerSnapshot, PacerState};
    #[cfg(target_has_atomic = "64")]
    #[doc(inline)]
    pub use stagger_core::quiet::{
        QuietPeriod, QuietPeriodBuilder, QuietPeriodError, QuietPeriodProblem, QuietSnapshot, QuietState, QuietTrigger,
    };
}

pub use call::machine::Attempt;
pub use call::scope;
pub use classify::marked::{Marked, OperationError};
pub use drive::blocking;
#[cfg(feature = "tokio")]
pub use drive::future::retry;
pub use drive::future::{Operation, RetryFuture, retry_with_timer};
pub use drive::poll_retry::PollRetry;
pub use drive::retry_loop::RetryLoop;
pub use error::boxed::BoxedError;
pub use error::call_error::{Cause, Error, Report, RetryResultExt};
pub use error::chain::display_chain;
pub use error::links::stop_reason;
pub use error::rejected::Rejected;
#[cfg(feature = "queue")]
pub use queue::batch;
pub use retrier::handle::Retrier;
pub use retrier::limits::LastAttempt;
#[cfg(target_has_atomic = "64")]
pub use stagger_core::breaker;
pub use stagger_core::{
    DelaySource, FailureKind, Guard, Guards, HintMode, Instant, Jitter, NestedRetries, Outcome, Policy, PolicyBuilder,
    PolicyError, PolicyProblem, Ratio, Seed, ServerHint, StopReason, machine, policy, profile, schedule, text,
};
pub use time::cancel::Cancel;
pub use time::entropy::seed;
