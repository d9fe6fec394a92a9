use core::num::NonZeroU32;

use stagger_core::profile::GRPC_A6;
use stagger_core::schedule::Backoff;
use stagger_core::{Jitter, Policy, PolicyError};

use super::loss::{Loss, ceilings, losses};
use super::{Circumstances, ExportError, Exported, System};
use crate::entry::RetryBudget;
use crate::service_config::{AttemptFields, MAX_ATTEMPTS, RetryFields, Writer};

/// A policy contains neither status codes nor method names.
const NEXT_STEPS: [&str; 2] = [
    "this config retries every method after UNAVAILABLE; restrict it to idempotent methods, and set their status codes",
    "pass the config to the channel, which retries by itself and knows what the server has processed; do not retry above it",
];

impl RetryFields {
    /// Maps a policy to a `retryPolicy` without status codes, and lists the settings that it cannot express: those in
    /// which [`policy`](Self::policy), which is what gRPC will do, differs from the given one.
    ///
    /// # Errors
    /// [`ExportError`] if the policy makes no retries, or its delays do not grow by a constant factor.
    pub fn from_policy(policy: &Policy) -> Result<(Self, Vec<Loss>), ExportError> {
        let (multiplier, problem) = match policy.backoff() {
            Backoff::Exponential { .. } if policy.jitter() == Jitter::Decorrelated => {
                (1.0, Some("jitter=decorrelated has no backoff ceilings, which gRPC needs; use full jitter"))
            }
            Backoff::Exponential { multiplier, .. } => (*multiplier, None),
            Backoff::Constant { .. } => (1.0, None),
            Backoff::Stop => (1.0, Some("the policy makes no retries; omit retryPolicy")),
            Backoff::Zero => (1.0, Some("initialBackoff must not be zero; use a backoff with a delay")),
            _ => (1.0, Some("gRPC's delays grow by a constant factor; use exponential or constant backoff")),
        };
        let is_single = !policy.allows_retries() && !matches!(policy.backoff(), Backoff::Stop);
        let single = is_single.then_some("max-attempts=1 makes no retries; omit retryPolicy");
        // The ceiling of the last retry that gRPC makes. As a cap it is never reached.
        let highest = || ceilings(policy).into_iter().take(MAX_ATTEMPTS as usize - 1).next_back();
        let cap = policy.cap().or_else(highest).unwrap_or(policy.base());
        let fields = Self {
            max_attempts: policy.max_attempts().map_or(MAX_ATTEMPTS, NonZeroU32::get).min(MAX_ATTEMPTS),
            initial_backoff: policy.base().min(cap),
            max_backoff: cap,
            backoff_multiplier: multiplier,
            codes: Vec::new(),
        };
        ExportError::unless([problem, single], ())?;
        let invalid = "gRPC's delays have a base and a cap above it; set both";
        let mapped = fields.policy().or_else(|_| ExportError::unless([Some(invalid)], *policy))?;
        let lost = losses(System::Grpc, policy, &mapped);
        Ok((fields, lost))
    }

    /// Returns the policy that gRPC follows: the profile [`GRPC_A6`] with these values. An initial backoff above the
    /// longest is reduced to it, and more than five attempts to five.
    ///
    /// # Errors
    /// [`PolicyError`] if gRPC accepts a value that no policy has.
    pub fn policy(&self) -> Result<Policy, PolicyError> {
        let shape = GRPC_A6.policy().to_builder().multiplier(self.backoff_multiplier);
        let (initial, max) = (self.initial_backoff.min(self.max_backoff), self.max_backoff);
        shape.base(initial).cap(max).max_attempts(self.max_attempts.min(MAX_ATTEMPTS)).build()
    }
}

pub(super) fn export(policy: &Policy, circumstances: &Circumstances) -> Result<Exported, ExportError> {
    let (mut fields, mut losses) = RetryFields::from_policy(policy)?;
    fields.codes = vec!["UNAVAILABLE"];
    let mut writer = Writer::default();
    writer.method([("", "")], circumstances.timeout, AttemptFields::Retry(fields));
    if let Some(limit) = circumstances.attempt_timeout {
        losses.push(Loss::new(System::Grpc, "attempt-timeout", stagger_core::text::Compact(limit)));
    }
    match circumstances.budget {
        None | Some(RetryBudget::Unlimited) => {}
        Some(RetryBudget::Throttle { tokens, ratio })
            if (1.0..=1_000.0).contains(&tokens) && tokens.fract() == 0.0 && is_ratio(ratio) =>
        {
            writer.throttling(tokens as u32, ratio);
        }
        Some(budget) => losses.push(Loss::new(System::Grpc, "budget", budget)),
    }
    Ok(Exported { text: format!("{writer}\n"), losses, next_steps: NEXT_STEPS.to_vec() })
}

/// Whether gRPC keeps a ratio as it is: in whole thousandths, up to 1000.
fn is_ratio(ratio: f64) -> bool {
    let thousandths = ratio * 1e3;
    (1.0..=1e6).contains(&thousandths) && (thousandths - thousandths.round()).abs() < 1e-6
}
