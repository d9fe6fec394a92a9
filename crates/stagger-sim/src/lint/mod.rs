//! Static checks of retry policies: finds settings that can cause a retry storm, before they do.
//!
//! [`check`] examines a [`Policy`](stagger_core::Policy) in its [`DeploymentContext`] by [rules](Rule::all()) with
//! stable codes. Each [`Finding`] states the problem with the figures of this policy, why it matters, and how to fix
//! it. If a change of the policy fixes it, the [`Suggestion`] is written in the policy language and has been verified.
//! Every figure is computed from the policy's own forecasts; no rule has a formula for delays of its own. [`fix`]
//! returns the policy with all suggestions applied.
//!
//! [`config`](https://docs.rs/stagger-sim/latest/stagger_sim/lint/config/index.html) checks configurations of other systems,
//! [`log`] delays that were measured, and `SystemFile::check` of [`system`](crate::system) the retries between services.
//!
//! ```
//! use stagger_core::Policy;
//! use stagger_sim::lint::{DeploymentContext, check, fix};
//!
//! let policy: Policy = "exponential base=1s cap=30s jitter=none".parse()?;
//! let found = check(&policy, &DeploymentContext::default());
//! assert_eq!(found[0].rule().code(), "S001");
//! assert_eq!(found[0].suggestion().to_string(), "jitter=full");
//! assert!(check(&fix(&policy, &DeploymentContext::default(), &[]), &DeploymentContext::default()).is_empty());
//! # Ok::<(), stagger_core::text::ParseError>(())
//! ```

mod analysis;
mod budget;
mod change;
#[cfg(feature = "config")]
pub mod config;
pub(crate) mod context;
mod cost;
mod estimate;
mod fact;
pub(crate) mod file;
mod finding;
mod goodness_of_fit;
pub mod log;
mod rule;
pub(crate) mod rules;

pub use budget::Budgeted;
pub use context::{DeploymentContext, Idempotency, Purpose};
pub use estimate::{Estimate, estimate};
pub use file::{Edit, FileFinding, Fix, Place};
pub use finding::{Finding, Suggestion, check, fix};
pub use goodness_of_fit::{GoodnessOfFit, QuantileCurve};
pub use rule::{Rule, Severity};
pub use stagger_core::text::{ParseValueError, Rate, parse_count, parse_number};
