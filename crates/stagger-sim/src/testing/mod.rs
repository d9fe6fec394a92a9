//! Assertions about retry storms, for your own tests: they fail if a change of a policy can cause a storm.
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::policy;
//! use stagger_sim::reconnect::ReconnectScenario;
//! use stagger_sim::testing::StormTest;
//!
//! let scenario = ReconnectScenario::builder(10_000).rate(500.0).backlog(250).build()?;
//! let policy = policy!(exponential(ms(500), secs(30)).spread(secs(20)).unlimited_attempts());
//! StormTest::run(&scenario, &policy)
//!     .all_clients_recover()
//!     .peak_second_at_most(600)
//!     .attempts_per_client_at_most(1.1)
//!     .recovered_p99_within(Duration::from_secs(25));
//! # Ok::<(), stagger_sim::ScenarioError>(())
//! ```
//!
//! A [`StormTest`] simulates a [mass disconnect](crate::reconnect), an [`OverloadTest`] an [outage](crate::outage)
//! under continuous traffic, a [`SystemTest`] a [system of services](crate::system). Each runs once, when it is
//! created, under a virtual clock. An assertion that fails panics at the line of its call, with the limit, all figures,
//! and a plot of the load on the server:
//!
//! ```text
#![doc = include_str!("example.txt")]
//! ```
//!
//! # Speed
//!
//! A simulation of a hundred thousand clients takes about twenty milliseconds if this crate is compiled with
//! optimizations (`cargo bench -p stagger-sim` measures it), and considerably longer without. To optimize only these
//! two crates in tests:
//!
//! ```toml
//! [profile.dev.package]
//! stagger-core.opt-level = 3
//! stagger-sim.opt-level = 3
//! ```
//!
//! # Randomness
//!
//! The seed is fixed unless you pass one, so tests are deterministic: the figures are the same on every machine until
//! the scenario or the policy changes. Leave a margin in your limits, so that they also hold for other seeds.

mod overload;
mod report;
mod storm;
mod system;

pub use overload::OverloadTest;
pub use storm::StormTest;
pub use system::SystemTest;
