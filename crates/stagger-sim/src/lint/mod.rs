//! What makes a storm of a policy, found before it is one.
//!
//! [`findings`] looks at a [`Policy`](stagger_core::Policy) in its [`Circumstances`] by [rules](Rule::all()) with
//! stable codes. Each [`Finding`] says what it is, with the figures of this policy, why that matters, and what mends
//! it; where the policy itself can be mended, the [`Help`] is in the policy language and has been tried. Every figure
//! is read from the policy's own forecasts; no rule has a formula of a delay. [`mended`] is the policy after all of it.
//!
//! [`log`] judges delays that have really happened.
//!
//! ```
//! use stagger_core::Policy;
//! use stagger_sim::lint::{Circumstances, findings, mended};
//!
//! let policy: Policy = "exponential base=1s cap=30s jitter=none".parse()?;
//! let found = findings(&policy, &Circumstances::default());
//! assert_eq!(found[0].rule().code(), "S001");
//! assert_eq!(found[0].help().to_string(), "jitter=full");
//! assert!(findings(&mended(&policy, &Circumstances::default(), &[]), &Circumstances::default()).is_empty());
//! # Ok::<(), stagger_core::text::ParseError>(())
//! ```

mod change;
mod circumstances;
mod error;
mod estimate;
mod finding;
mod fit;
pub mod log;
mod rate;
mod rule;
mod rules;
mod subject;

pub use circumstances::{Budgeted, Circumstances, Idempotency, Purpose};
pub use error::WordError;
pub use estimate::{Basis, Estimate, estimate};
pub use finding::{Finding, Help, findings, mended};
pub use fit::{Curve, Fit};
pub use rate::{Rate, parse_count, parse_number};
pub use rule::{Rule, Severity};
