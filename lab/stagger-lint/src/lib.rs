//! Static checks of retry policies: finds settings that can cause a retry storm, before they do.
//!
//! [`check`] examines a [`Policy`](stagger_core::Policy) in its [`DeploymentContext`] by [rules](Rule::all()) with
//! stable codes. Each [`Finding`] states the problem with the figures of this policy, why it matters, and how to fix
//! it. If a change of the policy fixes it, the [`Suggestion`] is written in the policy language and has been verified.
//! Every figure is computed from the policy's own forecasts; no rule has a formula for delays of its own. [`fix`]
//! returns the policy with all suggestions applied.
//!
//! [`config`](https://docs.rs/stagger-lint/latest/stagger_lint/config/index.html) checks configurations of other
//! systems, [`log`] delays that were measured, and
//! [`system`](https://docs.rs/stagger-lint/latest/stagger_lint/system/index.html) the retries between services.
//! [`advise`](mod@advise) recommends a policy for a fleet.
//!
//! ```
//! use stagger_core::Policy;
//! use stagger_lint::{DeploymentContext, check, fix};
//!
//! let policy: Policy = "exponential base=1s cap=30s jitter=none".parse()?;
//! let found = check(&policy, &DeploymentContext::default());
//! assert_eq!(found[0].rule().code(), "S001");
//! assert_eq!(found[0].suggestion().to_string(), "jitter=full");
//! assert!(check(&fix(&policy, &DeploymentContext::default(), &[]), &DeploymentContext::default()).is_empty());
//! # Ok::<(), stagger_core::text::ParseError>(())
//! ```
//!
//! # Features
//!
//! All are off by default; without them the simulator is the only dependency.
//!
//! - `config`: checks of configurations of Istio, Envoy, gRPC, nginx, systemd and others.
//! - `serde`: JSON in [`log`], which reads the output of `stagger run --log json`.
//! - `toml`: checks of systems of services, as TOML files.
//!
//! No type of another dependency than `stagger-core`, `stagger-sim` and, with `config`, `stagger-config` is in the
//! public interface.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod advise;
mod analysis;
mod change;
#[cfg(feature = "config")]
pub mod config;
mod context;
mod file;
mod finding;
pub mod log;
mod rule;
mod rules;
mod stalls;
#[cfg(feature = "toml")]
pub mod system;
mod trial;

pub use context::{Budgeted, DeploymentContext, Estimate, Idempotency, Purpose, estimate};
pub use file::{Edit, FileFinding, Fix, Place};
pub use finding::{Finding, Suggestion, check, fix, warns};
pub use rule::{Rule, Severity};
