//! Retry storms under a virtual clock.
//!
//! The same [`Policy`](stagger_core::Policy) that runs in production, with up to 67 million clients at once: what does it
//! do to the server, how long does it take until everyone is back, and how far is that from the best possible? The clients
//! decide by [`stagger_core::machine::RetryMachine`] itself, each with its own seed and state; there is no copy of any formula here.
//!
//! | scenario | what happens |
//! |---|---|
//! | [`occ`] | everyone writes one row, and of those who read it at the same time one is let through |
//! | [`outage`] | requests come all the time, and a server stalls for a while: does it come back? |
//! | [`reconnect`] | everyone loses the connection at once, and a server lets in so many a second |
//! | [`fluid`] | the same with shares instead of clients, at once and without chance |
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::{Policy, Seed};
//! use stagger_sim::reconnect::Scenario;
//!
//! let scenario = Scenario::builder(10_000).rate(500.0).backlog(250).build()?;
//! let policy = Policy::exponential(Duration::from_millis(500), Duration::from_secs(30)).unlimited_attempts().build()?;
//! let figures = scenario.run(&policy, Seed::new(1));
//!
//! // Full jitter makes five attempts where one would do, a quarter of all clients at once among the first ...
//! assert!((4.7..5.0).contains(&figures.attempts_per_client()));
//! assert!(figures.peak() > 2_400);
//! // ... and needs twice the time that the server would.
//! assert!(figures.efficiency().time.is_some_and(|share| share < 0.5));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! [`lint`] finds what makes a storm of a policy without running it, and says how to mend it.
//!
//! [`Runs`] makes many runs side by side, [`Watch`] shows how far they are and stops them; [`testing`] is for tests of your
//! own, which fail when a policy can cause a storm. [`advise`] finds the best policies for a fleet.
//!
//! # Features
//!
//! - `serde` (off by default; without it the core is the only dependency): `storm`, results as a document with a schema, and
//!   `lint::log`, which reads what `stagger run --log json` writes.
//!
//! # Chance
//!
//! Every draw is numbered by seed, client and attempt: a seed gives the same figures on every machine, with either
//! [`Engine`] and any number of threads. What belongs to the world (when a client is hit, how long a message takes) is the
//! same for every policy.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod advise;
mod chance;
mod client;
mod engine;
mod error;
pub mod fluid;
mod histogram;
pub mod lint;
mod network;
pub mod occ;
pub mod outage;
mod random;
pub mod reconnect;
mod runs;
mod series;
#[cfg(feature = "serde")]
pub mod storm;
pub mod testing;
mod time;
mod watch;

pub use engine::Engine;
pub use error::{ScenarioError, ScenarioFault};
pub use runs::Runs;
pub use series::Series;
pub use watch::Watch;
