//! Claims about storms, for the tests of those who use a policy: a change that can cause a storm fails them.
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
//! A [`StormTest`] is a [mass disconnect](crate::reconnect), an [`OverloadTest`] an [outage](crate::outage) under traffic that goes
//! on. Each runs once, when it is made, under a virtual clock. Each claim that does not hold panics at the line that made it,
//! with what was claimed, all figures, and a picture of what the server saw:
//!
//! ```text
#![doc = include_str!("example.txt")]
//! ```
//!
//! # Speed
//!
//! A hundred thousand clients take some twenty milliseconds if this crate is compiled with optimisation (`cargo bench -p
//! stagger-sim` has the figure), and a good deal longer without. Tests are usually compiled without; for these two crates
//! alone:
//!
//! ```toml
//! [profile.dev.package]
//! stagger-core.opt-level = 3
//! stagger-sim.opt-level = 3
//! ```
//!
//! # Chance
//!
//! The seed is always the same unless you give one, so a test does not fail by chance: the same figures come out on every
//! machine, until scenario or policy change. Leave some room in what you claim, so that it also holds for other seeds.

mod overload;
mod plot;
mod report;
mod storm;

pub use overload::OverloadTest;
pub use storm::StormTest;
