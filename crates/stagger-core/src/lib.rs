//! Backoff, jitter and the decision whether to retry, without I/O.
//!
//! This is the core of [stagger](https://docs.rs/stagger), which adds the drivers: blocking and async retry loops,
//! timers, events. Use this crate directly to write a driver, an integration or a simulation of your own. It has no
//! clock, sleep, I/O, allocation or dependency, and no source of randomness other than the [`Seed`] it is given. The
//! time, the seed and the state of a call are arguments, so the same [`Policy`] value can be run, planned, simulated
//! and tested.
//!
//! The types, in the direction in which data flows:
//!
//! - A [`Policy`] holds the settings: plain data, checked when it is built.
//! - A [`Schedule`](crate::schedule::Schedule) is the series of delays that a policy gives for a [`Seed`].
//! - A [`RetryMachine`](crate::machine::RetryMachine) decides whether to retry and when, from the policy, the
//!   [`RetryState`](crate::machine::RetryState) of one call, the [`Outcome`] of its last attempt, and the [`Guards`]
//!   (budget and circuit breaker) that it shares with other calls. The [order of its
//!   questions](crate::machine::RetryMachine#the-order-inside-decide) is specified.
//! - A [`ReconnectMachine`](crate::machine::ReconnectMachine) does the same for a long-lived connection.
//! - Forecasts ([`Policy::bounds`], [`Policy::mean`], [`Policy::quantile`] and their `elapsed_` counterparts) predict
//!   the delays of a policy without drawing any.
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::{Policy, Seed, policy};
//!
//! const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));
//!
//! assert_eq!(POLICY.bounds(3), Some((Duration::ZERO, Duration::from_millis(400))));
//! assert_eq!(POLICY.delays(Seed::new(1)).count(), 3);
//! assert_eq!(POLICY, "exponential base=100ms cap=10s".parse()?);
//! # Ok::<(), stagger_core::text::ParseError>(())
//! ```
//!
//! # Features
//!
//! - `serde` (off by default; the only dependency): reads and writes policies, jitters and shares as TOML, JSON and the
//!   like, and paused retries ([`Paused`](crate::machine::Paused)).
//!
//! No type of a dependency is in the public interface. With `serde`, the traits of serde 1 are implemented.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
#[macro_use]
extern crate std;

// These modules depend on each other in one direction. `numbers` and `outcome` import nothing, `policy` these two,
// `schedule` and `forecast` the policy, `profile` the schedule, and `text` the profiles. The guards and the machines
// import what they need of these.
#[cfg(all(feature = "admission", target_has_atomic = "64"))]
pub mod admission;
mod forecast;
mod guards;
#[cfg(feature = "hedge")]
pub mod hedge;
pub mod machine;
mod numbers;
mod outcome;
mod policy;
pub mod profile;
pub mod schedule;
pub mod text;

pub use guards::guard;
pub use guards::guard::{Guard, Guards, NestedRetries};
#[cfg(target_has_atomic = "64")]
pub use guards::{breaker, budget, pacer, quiet};
pub use machine::decision::{DelaySource, StopReason};
pub use numbers::instant::Instant;
pub use numbers::random::Seed;
pub use numbers::ratio::Ratio;
pub use outcome::{FailureKind, Outcome, ServerHint};

#[doc(hidden)]
pub use policy::units;
pub use policy::{HintMode, Jitter};
pub use policy::{Policy, PolicyBuilder, PolicyError, PolicyProblem};
