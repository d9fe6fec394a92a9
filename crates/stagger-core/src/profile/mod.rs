//! Named policies: the exact behavior of established systems, and our recommendations.
//!
//! Each [`Profile`] names the source of its numbers, the version, and when it was read. Its delays are exact to the
//! unit in which the system counts; anything else the system does (budgets, which errors it retries) is not part of a
//! policy. The policy language accepts their names, and settings after the name override the profile:
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::{Policy, profile::Profile, profile};
//!
//! let policy: Policy = "aws-sdk max-attempts=5".parse()?;
//! assert_eq!(policy, profile::AWS_SDK.policy().to_builder().max_attempts(5).build()?);
//!
//! let curl = Profile::named("curl").expect("it is one of them");
//! assert_eq!(curl.policy().cap(), Some(Duration::from_secs(600)));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod curves;
mod entry;
mod polly;
mod table;

pub use entry::Profile;
pub use table::*;

pub use crate::policy::ProfileJitter;
