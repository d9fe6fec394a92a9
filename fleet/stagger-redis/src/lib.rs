//! Guards for a fleet: a retry budget, a quiet period, admission and operator controls for all processes of a service,
//! shared through Redis or Valkey.
//!
//! A hundred processes with a budget of 500 tokens each are a burst of 10,000 retries. [`SharedTokens`] is one budget
//! for all of them:
//!
//! ```no_run
//! // It needs a runtime, and a store to be of use.
//! use core::time::Duration;
//!
//! use stagger::{Policy, Retrier, policy};
//! use stagger_redis::Fleet;
//!
//! const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(3));
//!
//! # async fn fleet() -> Result<(), stagger_redis::SettingsError> {
//! // Eight processes usually run.
//! let fleet = Fleet::builder("redis://127.0.0.1:6379", 8).namespace("shop").build()?;
//! let payments = fleet.tokens("payments").capacity(500).refill(50, Duration::from_secs(1)).build()?;
//! let retrier = Retrier::new(POLICY).named("payments").budget(payments);
//! # let _ = retrier;
//! # Ok(())
//! # }
//! ```
//!
//! [`SharedWindow`] bounds the retries of all by a share of the calls of all.
//!
//! [`SharedQuietPeriod`] is one pause for all of them: if the server tells one process to wait, all wait.
//!
//! ```no_run
//! // It needs a runtime, and a store to be of use.
//! use stagger::{Policy, Retrier};
//! use stagger_redis::Fleet;
//!
//! # async fn fleet() -> Result<(), stagger_redis::SettingsError> {
//! let fleet = Fleet::builder("redis://127.0.0.1:6379", 8).namespace("shop").build()?;
//! let quiet = fleet.quiet_period("payments").build()?;
//! let retrier = Retrier::new(Policy::DEFAULT).named("payments").guard(quiet);
//! # let _ = retrier;
//! # Ok(())
//! # }
//! ```
//!
//! [`SharedBreaker`] is a circuit breaker that opens earlier if those of other processes are open.
//!
//! [`SharedAdmission`] is one virtual queue for the clients of all servers behind a balancer.
//!
//! [`Fleet::controls`] lets [`RetryControls`](stagger::control::RetryControls) obey what an operator sets once for all,
//! with `stagger control` or a [`ControlStore`].
//!
//! # How it works
//!
//! A process holds a *lease*: tokens that it may spend alone for three seconds. [Acquiring a permit](SharedTokens)
//! touches local atomics and never waits. One background task per [`Fleet`] reports to the store each second what the
//! process has spent and earned, and whether it was told to wait, for all guards in one call, and receives its next
//! leases and what the others were told. A process that runs short, or was told to wait, reports earlier; there are
//! never more than `T + 3` reports in T seconds, one at the end of the process, and one if the store's clock jumps. A
//! reply must come in 250 ms, or [another limit](FleetBuilder::reply_limit), and a connection in twice as long. After a
//! failure the task reconnects by a policy of stagger, with full jitter up to one second.
//!
//! Counters are cumulative, so a lost reply or a failover to a replica that lacks the last second is repaired by the
//! next report. Only durations travel: the clocks of the processes do not matter, and the store's clock may jump.
//!
#![doc = include_str!("store.md")]
//!
//! # Features
//!
//! | feature | for |
//! |---|---|
//! | `rustls` | addresses with `rediss:`, with the system's root certificates, or those that `SSL_CERT_FILE` names |
//! | `sentinel` | [`Fleet::sentinel`](Fleet#method.sentinel) |
//! | `cluster` | [`Fleet::cluster`](Fleet#method.cluster) |
//! | `metrics` | the metrics below |
//! | `tracing` | a warning when the store is lost, and a line at `INFO` when it is back; its target is `stagger` |
//!
//! # Metrics
#![doc = include_str!("metrics.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod connection;
mod controls;
mod error;
mod fleet;
mod guards;
mod keys;
mod leases;
// It compares the script with its model, and drives guards without a task: private functions.
#[cfg(test)]
#[path = "../tests/model/mod.rs"]
mod model;
mod observe;
mod registry;
mod script;
mod task;
pub use controls::{ControlStore, ControlStoreError, StoredControls};
pub use error::{SettingsError, SettingsProblem};
pub use fleet::{ControlsSnapshot, Fleet, FleetBuilder, FleetSnapshot};
pub use guards::admission::{SharedAdmission, SharedAdmissionBuilder, SharedAdmissionSnapshot};
pub use guards::breaker::{SharedBreaker, SharedBreakerBuilder, SharedBreakerSnapshot};
pub use guards::quiet::{Quorum, SharedQuietPeriod, SharedQuietPeriodBuilder};
pub use guards::tokens::{SharedTokens, SharedTokensBuilder, SharedTokensSnapshot};
pub use guards::window::{SharedWindow, SharedWindowBuilder, SharedWindowSnapshot};
pub use observe::FleetEvent;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use observe::describe_metrics;
