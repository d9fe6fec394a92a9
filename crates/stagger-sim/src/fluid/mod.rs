//! The mean-field twin of [`reconnect`](crate::reconnect): not clients but shares of them, in cohorts by retry.
//!
//! Its work does not depend on the number of clients, so it answers at once, for a search over policies or while somebody
//! moves a slider; and being another way to the same figures, it is what the exact simulation is tested against. With a
//! million clients both agree to 0.5 % in attempts.
//!
//! It moves in steps of 5 ms: what arrives in a step is accepted as far as there is room, the rest is spread over the delays
//! that the policy's [forecast](stagger_core::Policy::quantile) says, on both ways of the network. There is no chance in it;
//! what chance does to few clients is not in its figures.
//!
//! Policies whose delays depend on the delays drawn before have no cohorts, and some settings need to know more of a client
//! than its number of retries: [`NotSimulable`] says which.
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::Policy;
//! use stagger_sim::{fluid, reconnect::ReconnectScenario};
//!
//! let scenario = ReconnectScenario::builder(1_000_000).rate(20_000.0).backlog(10_000).build()?;
//! let policy = Policy::exponential(Duration::from_millis(500), Duration::from_secs(30)).unlimited_attempts().build()?;
//! let figures = fluid::run(&scenario, &policy)?;
//! assert!((figures.attempts_per_client - 6.268).abs() < 0.03);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod attempt_delays;
mod cohort;
mod distribution;
mod figures;
mod not_simulable;
mod simulation;
mod step;

pub use figures::FluidFigures;
pub use not_simulable::NotSimulable;
pub use simulation::run;
