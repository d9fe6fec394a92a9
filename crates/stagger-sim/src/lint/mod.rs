//! What makes a storm of a policy, found before it is one.
//!
//! [`check`] looks at a [`Policy`](stagger_core::Policy) in its [`DeploymentContext`] by [rules](Rule::all()) with
//! stable codes. Each [`Finding`] says what it is, with the figures of this policy, why that matters, and what mends
//! it; where the policy itself can be fixed, the [`Suggestion`] is in the policy language and has been tried. Every figure
//! is read from the policy's own forecasts; no rule has a formula of a delay. [`fix`] is the policy after all of it.
//!
//! [`log`] judges delays that have really happened.
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
//! # Ok::<(), stagger_core::ParseError>(())
//! ```

mod analysis;
mod change;
mod context;
mod error;
mod estimate;
mod finding;
mod goodness_of_fit;
pub mod log;
mod rate;
mod rule;
mod rules;

pub use context::{Budgeted, DeploymentContext, Idempotency, Purpose};
pub use error::ParseValueError;
pub use estimate::{Basis, Estimate, estimate};
pub use finding::{Finding, Suggestion, check, fix};
pub use goodness_of_fit::{GoodnessOfFit, QuantileCurve};
pub use rate::{Rate, parse_count, parse_number};
pub use rule::{Rule, Severity};
