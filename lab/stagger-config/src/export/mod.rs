//! Policies as configurations of other systems: what can be said exactly, and a list of what cannot.
//!
//! ```
//! use stagger_config::export::{Circumstances, System, export};
//! use stagger_core::Policy;
//!
//! let policy: Policy = "exponential base=25ms cap=1s max-attempts=4".parse()?;
//! let exported = export(System::Istio, &policy, &Circumstances::default())?;
//! assert!(exported.text.contains("attempts: 3"));
//! // Istio has no field for the cap: it is ten times the base.
//! assert!(exported.losses.iter().any(|loss| loss.to_string().starts_with("jitter=full: ")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod envoy;
mod grpc;
mod istio;
mod loss;

use core::fmt;
use core::time::Duration;

use stagger_core::Policy;

use crate::entry::RetryBudget;

pub use loss::{Loss, instead};

/// A system that policies are exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum System {
    /// gRPC service config.
    Grpc,
    /// Envoy: a route, and a cluster if there is a budget.
    Envoy,
    /// Istio: a `VirtualService`, and a `DestinationRule` if there is a budget.
    Istio,
}

/// What a configuration says beside the policy. By default, nothing: the system's defaults apply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Circumstances {
    attempt_timeout: Option<Duration>,
    timeout: Option<Duration>,
    budget: Option<RetryBudget>,
}

impl Circumstances {
    /// Sets the time limit of one attempt. Default: the system's.
    #[must_use]
    pub const fn attempt_timeout(mut self, limit: Duration) -> Self {
        self.attempt_timeout = Some(limit);
        self
    }

    /// Sets the time limit of all attempts and delays together. Default: the system's, which is 15 s in Envoy and none
    /// in the others.
    #[must_use]
    pub const fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets what limits the retries of all calls together. Default: the system's, which is three retries at once in
    /// Envoy and nothing in the others.
    #[must_use]
    pub const fn budget(mut self, budget: RetryBudget) -> Self {
        self.budget = Some(budget);
        self
    }
}

/// A policy as the configuration of another system.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Exported {
    /// The configuration.
    pub text: String,
    /// What the system does differently than the policy and the circumstances say.
    pub losses: Vec<Loss>,
    /// What remains to be done with the text.
    pub next_steps: Vec<&'static str>,
}

/// Why a policy has no counterpart in a system, each reason with a way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportError {
    problems: Vec<&'static str>,
}

impl ExportError {
    /// Returns `value` if there are no problems, and the error otherwise.
    fn unless<T>(problems: impl IntoIterator<Item = Option<&'static str>>, value: T) -> Result<T, Self> {
        let problems: Vec<_> = problems.into_iter().flatten().collect();
        if problems.is_empty() { Ok(value) } else { Err(Self { problems }) }
    }

    /// Returns the reasons.
    pub fn problems(&self) -> impl Iterator<Item = &'static str> {
        self.problems.iter().copied()
    }
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("; "))
    }
}

impl core::error::Error for ExportError {}

/// Writes a policy as the configuration of a system, with its circumstances.
///
/// [`read`](crate::read) of the text yields the policy in its attempts and delays, and the circumstances, except for
/// what is listed as lost.
///
/// # Errors
/// [`ExportError`] if the policy makes no retries, or has delays or no limit of attempts for which the system has no
/// field.
pub fn export(system: System, policy: &Policy, circumstances: &Circumstances) -> Result<Exported, ExportError> {
    match system {
        System::Grpc => grpc::export(policy, circumstances),
        System::Envoy => envoy::export(policy, circumstances),
        System::Istio => istio::export(policy, circumstances),
    }
}
