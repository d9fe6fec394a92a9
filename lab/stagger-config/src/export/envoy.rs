use core::time::Duration;

use stagger_core::Policy;
use stagger_core::profile::ENVOY;
use stagger_core::schedule::Backoff;

use super::loss::{Loss, ceilings, losses};
use super::{Circumstances, ExportError, Exported, System};
use crate::entry::RetryBudget;
use crate::units::to_protobuf;

/// Conditions under which no server has processed the request. A policy does not contain conditions.
pub(super) const RETRY_ON: &str = "connect-failure,refused-stream,reset-before-request";

const NEXT_STEPS: [&str; 2] = [
    "this route retries what no server has processed; add conditions, such as gateway-error, only where requests are idempotent",
    "merge the fields into your route and cluster; do not retry above this proxy",
];

/// What Envoy's fields say.
pub(super) struct EnvoyFields {
    pub(super) retries: u32,
    pub(super) base: Duration,
    pub(super) cap: Duration,
}

impl EnvoyFields {
    /// Maps a policy, whose cap may be fixed by its base.
    pub(super) fn from_policy(
        system: System,
        policy: &Policy,
        cap: impl FnOnce(Duration) -> Option<Duration>,
    ) -> Result<(Self, Vec<Loss>), ExportError> {
        const LEAST: Duration = Duration::from_millis(1);
        let (is_growing, shape) = match policy.backoff() {
            Backoff::Exponential { .. } | Backoff::Constant { .. } => (true, None),
            Backoff::Stop => (false, Some("the policy makes no retries; leave out the retry policy")),
            Backoff::Zero => (false, Some("Envoy's delays are at least 1ms; use a backoff with a delay")),
            _ => (false, Some("Envoy's delays double up to a cap; use exponential or constant backoff")),
        };
        let attempts = policy.max_attempts().map(core::num::NonZeroU32::get);
        let problems = [
            shape,
            (is_growing && attempts == Some(1))
                .then_some("max-attempts=1 makes no retries; leave out the retry policy"),
            (is_growing && attempts.is_none()).then_some("Envoy needs a limit of attempts; set max-attempts"),
            (is_growing && policy.base() < LEAST).then_some("Envoy's delays are at least 1ms; raise the base"),
        ];
        ExportError::unless(problems, ())?;
        let highest = || ceilings(policy).last().copied().unwrap_or_default();
        let base = policy.base();
        let cap = cap(base).or(policy.cap()).unwrap_or_else(highest).max(base);
        let fields = Self { retries: attempts.unwrap_or(1).saturating_sub(1), base, cap };
        let mapped = ENVOY.policy().to_builder().base(base).cap(cap).max_attempts(fields.retries.saturating_add(1));
        let invalid = "Envoy's delays have a base and a cap above it; set both";
        let mapped = mapped.build().or_else(|_| ExportError::unless([Some(invalid)], *policy))?;
        let lost = losses(system, policy, &mapped);
        Ok((fields, lost))
    }
}

/// Returns the threshold of a circuit breaker, unless the budget has no counterpart.
pub(super) enum Threshold {
    Absent,
    Retries(u32),
    Share { percent: f64, least: u32 },
}

impl Threshold {
    pub(super) fn of(system: System, circumstances: &Circumstances, losses: &mut Vec<Loss>) -> Self {
        match circumstances.budget {
            None => Self::Absent,
            // What Istio writes for it.
            Some(RetryBudget::Unlimited) => Self::Retries(u32::MAX),
            Some(RetryBudget::Concurrent(retries)) => Self::Retries(retries),
            Some(RetryBudget::ShareOfActive { ratio, least }) if (0.0..=1.0).contains(&ratio) => {
                Self::Share { percent: (ratio * 1e8).round() / 1e6, least }
            }
            Some(budget) => {
                losses.push(Loss::new(system, "budget", budget));
                Self::Absent
            }
        }
    }
}

pub(super) fn export(policy: &Policy, circumstances: &Circumstances) -> Result<Exported, ExportError> {
    let (fields, mut losses) = EnvoyFields::from_policy(System::Envoy, policy, |_| None)?;
    let mut text = "route:\n".to_owned();
    if let Some(limit) = circumstances.timeout {
        text += &format!("  timeout: {}\n", to_protobuf(limit));
    }
    text += &format!("  retry_policy:\n    retry_on: {RETRY_ON}\n    num_retries: {}\n", fields.retries);
    if let Some(limit) = circumstances.attempt_timeout {
        text += &format!("    per_try_timeout: {}\n", to_protobuf(limit));
    }
    text += &format!(
        "    retry_back_off:\n      base_interval: {}\n      max_interval: {}\n",
        to_protobuf(fields.base),
        to_protobuf(fields.cap)
    );
    let breaker = "cluster:\n  circuit_breakers:\n    thresholds:\n";
    match Threshold::of(System::Envoy, circumstances, &mut losses) {
        Threshold::Absent => {}
        Threshold::Retries(retries) => text += &format!("{breaker}    - max_retries: {retries}\n"),
        Threshold::Share { percent, least } => {
            text += &format!(
                "{breaker}    - retry_budget:\n        budget_percent:\n          value: {percent}\n        min_retry_concurrency: {least}\n"
            );
        }
    }
    Ok(Exported { text, losses, next_steps: NEXT_STEPS.to_vec() })
}
