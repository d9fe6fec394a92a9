//! Retries that don't stampede: exponential backoff and jitter for async and blocking code, and the judgement around it.
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
//! | retry one async call | [`retry`](fn@retry), [`retry_with_timer`] on another timer |
//! | retry one blocking call | [`blocking::retry`] |
//! | share budget, breaker, rules and listeners among calls | [`Retrier`] |
//! | lend `&mut` to the operation | [`Retrier::run_with`], or the loop form [`Retrier::call`] |
//! | say from inside the operation what an error means | [`Marked`] |
//! | keep a connection up | [`Reconnect`](crate::reconnect::Reconnect) |
//! | keep many retries pending on one task | [`queue::RetryQueue`] |
//! | send a batch, and only its failed items again | [`batch::Batch`] |
//! | do something again and again, at the times of a schedule | [`Ticker`](crate::reconnect::Ticker), [`blocking::Ticker`] |
//! | do something every so often, out of step with everybody else | [`interval`](crate::reconnect::interval), [`blocking::interval`] |
//! | move guards, and turn retries down, while the program runs | [`control`] |
//! | come from the Go package cenkalti/backoff | [`cenkalti`] |
//! | test what uses it | [`testing`] |
//! | write the loop by hand | [`Policy::delays`], or [`RetryMachine`](crate::machine::RetryMachine) for a driver of your own |
//!
//! Nothing here is decided but in the core: the policy, the order of the questions ([`RetryMachine`](crate::machine::RetryMachine)) and every formula are
//! [`stagger_core`]'s, which is re-exported whole. The one exception is [`cenkalti`], which decides as that package does.
//!
//! # By hand
//!
//! Who wants no driver takes the delays and loops:
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
//! # What it promises
//!
//! - The operation runs at least once, is created after the sleep, and its success is given even if it was cancelled
//!   meanwhile. Only an open breaker can refuse the first attempt.
//! - A success at the first attempt reads no clock, draws no random number and allocates nothing.
//! - Dropping a future stops at once, and gives back what was borrowed from budget and breaker.
//! - A call inside an attempt of another call stands down: see [`scope`].
//! - No panic of its own, and no `unsafe`.
//!
//! # Features
//!
//! `tokio` (default), `async-io`, `futures-timer`, `serde`, `tracing`, `metrics`, `stream`: each only adds. Without `tokio`,
//! [`retry`](fn@retry) is not there, and the timer is named in the call.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod batch;
pub mod blocking;
#[cfg(target_has_atomic = "64")]
pub mod budget;
mod call;
mod cancel;
pub mod cenkalti;
pub mod classify;
mod clock;
#[cfg(target_has_atomic = "64")]
pub mod control;
mod entropy;
mod error;
mod event;
mod fairness;
mod future;
pub mod hedge;
mod hedging;
mod marked;
pub mod observe;
mod own;
mod poll_retry;
pub mod queue;
pub mod reconnect;
mod retrier;
mod retry_loop;
mod rule;
pub mod scope;
mod setup;
mod shared;

mod steps;
pub mod testing;
mod ticker;
pub mod time;
mod timer;
mod until;

pub use stagger_core::{
    Breaker, BreakerOpen, Budget, DelaySource, FailureKind, Guards, HintMode, Instant, Jitter, NestedRetries, Outcome,
    Policy, PolicyBuilder, PolicyError, PolicyProblem, Ratio, Seed, ServerHint, StopReason, guard, machine, policy,
    profile, schedule, text,
};
#[cfg(target_has_atomic = "64")]
pub use stagger_core::{admission, breaker};

pub use call::Attempt;
pub use cancel::Cancel;
pub use entropy::seed;
pub use error::{Cause, Error, Rejected, Report, RetryResultExt};
#[cfg(feature = "tokio")]
pub use future::retry;
pub use future::{RetryFuture, retry_with_timer};
pub use marked::Marked;
pub use poll_retry::PollRetry;
pub use retrier::Retrier;
pub use retry_loop::RetryLoop;
pub use setup::LastAttempt;
