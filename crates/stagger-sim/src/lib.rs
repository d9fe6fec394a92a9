//! Simulation of retry storms under a virtual clock.
//!
//! Runs the same [`Policy`](stagger_core::Policy) as production code, with up to 67 million clients at once: what load
//! does it put on the server, how long does it take until all clients are back, and how far is that from the optimum?
//! The clients decide with [`stagger_core::machine::RetryMachine`] itself, each with its own seed and state; this crate
//! has no copy of any formula.
//!
//! | scenario | what happens |
//! |---|---|
//! | [`occ`] | all clients write one row under optimistic concurrency control |
//! | [`outage`] | requests arrive continuously, and the server stalls for a while: does it recover? |
//! | [`reconnect`] | all clients lose their connections at once, and the server accepts a limited rate |
//! | [`system`] | several services call each other, and one has a fault: do their retries keep the system down? |
//! | [`fluid`] | the mean-field approximation of [`reconnect`]: fast and deterministic |
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::{Policy, Seed};
//! use stagger_sim::reconnect::ReconnectScenario;
//!
//! let scenario = ReconnectScenario::builder(10_000).rate(500.0).backlog(250).build()?;
//! let policy = Policy::exponential(Duration::from_millis(500), Duration::from_secs(30)).unlimited_attempts().build()?;
//! let figures = scenario.run(&policy, Seed::new(1));
//!
//! // With full jitter, clients make five attempts instead of one, and a quarter of them arrive within 100 ms ...
//! assert!((4.7..5.0).contains(&figures.attempts_per_client()));
//! assert!(figures.peak() > 2_400);
//! // ... and recovery takes twice the minimum.
//! assert!(figures.efficiency().time.is_some_and(|share| share < 0.5));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! [`Sweep`] executes many runs in parallel, [`Progress`] reports their progress and cancels them; [`testing`] has
//! assertions for your own tests, which fail if a policy can cause a storm. [`GoodnessOfFit`] says how well delays that
//! were drawn or measured match a policy's forecast. The crate `stagger-lint` finds settings that can cause a storm
//! without a run, and the best policies for a fleet.
//!
//! # Features
//!
//! - `serde` (off by default; without it the core is the only dependency): the module `storm`, results as a document
//!   with a schema.
//! - `toml` (off by default): `system::SystemFile`, systems of services as TOML files.
//!
//! No type of another dependency than `stagger-core` is in the public interface. With `serde`, the traits of serde 1
//! are implemented.
//!
//! # Randomness
//!
//! Every random draw is a function of seed, client and attempt: a seed gives the same figures on every machine and with
//! any number of threads. Random quantities of the environment (when a client is disconnected,
//! how long a message takes) are the same for every policy.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod client_policy;
mod distributions;
mod engine;
mod environment;
pub mod fluid;
mod goodness_of_fit;
pub mod occ;
pub mod outage;
pub mod reconnect;
mod scenario;
#[cfg(feature = "serde")]
pub mod storm;
pub mod system;
pub mod testing;

pub use engine::{CancelToken, Progress, Sweep, TimeSeries};
pub use goodness_of_fit::{GoodnessOfFit, QuantileCurve};
pub use scenario::{ScenarioError, ScenarioProblem};
