//! Backoff, jitter and the decision whether to retry.
//!
//! The core of [stagger](https://docs.rs/stagger): it decides, and everything else drives it. It has no clock, no
//! sleep, no I/O and no randomness of its own; it does not allocate and depends on nothing. Time, seeds and the
//! present state come in as arguments, so one and the same [`Policy`] can be run, planned, simulated and proved.
//!
//! Data flows one way:
//!
//! - a [`Policy`] is plain data, checked when it is built;
//! - a [`Schedule`](crate::schedule::Schedule) is the series of delays that it gives for a [`Seed`];
//! - [`RetryMachine`](crate::machine::RetryMachine) decides, with the [`RetryState`](crate::machine::RetryState) of one call, the [`Outcome`] of its last attempt and the [`Guards`] that it
//!   shares with other calls; the order of its questions is [its specification](crate::machine::RetryMachine#the-order-inside-decide);
//! - [`ReconnectMachine`](crate::machine::ReconnectMachine) is the same for a connection that is kept up;
//! - forecasts ([`Policy::bounds`], [`Policy::mean`], [`Policy::quantile`] and their `elapsed_` counterparts) tell what
//!   the schedule will give.
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
//! - `serde` (off by default; the only dependency): policies, jitters and shares to and from TOML, JSON and the like, and
//!   retries at rest ([`Paused`](crate::machine::Paused)).

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
#[macro_use]
extern crate std;

#[cfg(target_has_atomic = "64")]
pub mod admission;
mod backoff;
#[cfg(target_has_atomic = "64")]
pub mod breaker;
#[cfg(target_has_atomic = "64")]
pub mod budget;
mod forecast;
pub mod guard;
pub mod hedge;
mod hint;
mod instant;
mod jitter;
pub mod machine;
mod macros;
mod math;
mod outcome;
mod paused;
mod policy;
pub mod profile;
mod ratio;
mod reconnect;
mod retry;
pub mod schedule;
mod seed;
mod state;
mod sync;
pub mod text;

pub use guard::{Breaker, BreakerOpen, Budget, Guards, NestedRetries};
pub use hint::{HintMode, ServerHint};
pub use instant::Instant;
pub use jitter::Jitter;
pub use outcome::{DelaySource, FailureKind, Outcome, StopReason};
pub use policy::{Policy, PolicyBuilder, PolicyError, PolicyProblem};
pub use ratio::Ratio;
pub use seed::Seed;

#[doc(hidden)]
pub use macros::units;
