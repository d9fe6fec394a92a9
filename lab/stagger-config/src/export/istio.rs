use core::time::Duration;

use stagger_core::Policy;

use super::envoy::{EnvoyFields, RETRY_ON, Threshold};
use super::{Circumstances, ExportError, Exported, System};
use crate::units::to_go;

/// The cap that Istio writes into its routes: it has no field for it.
const CAP_FACTOR: u32 = 10;

const NEXT_STEPS: [&str; 2] = [
    "this route retries what no server has processed; add conditions, such as gateway-error, only where requests are idempotent",
    "replace the host `example`; do not retry in the clients of this route",
];

pub(super) fn export(policy: &Policy, circumstances: &Circumstances) -> Result<Exported, ExportError> {
    let cap = |base: Duration| Some(base.saturating_mul(CAP_FACTOR));
    let (fields, mut losses) = EnvoyFields::from_policy(System::Istio, policy, cap)?;
    let mut text = object("VirtualService");
    text += "  hosts: [example]\n  http:\n  - route:\n    - destination: {host: example}\n";
    if let Some(limit) = circumstances.timeout {
        text += &format!("    timeout: {}\n", to_go(limit));
    }
    text += &format!("    retries:\n      attempts: {}\n      retryOn: {RETRY_ON}\n", fields.retries);
    if let Some(limit) = circumstances.attempt_timeout {
        text += &format!("      perTryTimeout: {}\n", to_go(limit));
    }
    text += &format!("      backoff: {}\n", to_go(fields.base));
    let rule =
        |limit: &str| format!("---\n{}  host: example\n  trafficPolicy:\n    {limit}\n", object("DestinationRule"));
    match Threshold::of(System::Istio, circumstances, &mut losses) {
        Threshold::Absent => {}
        Threshold::Retries(retries) => {
            text += &rule(&format!("connectionPool: {{http: {{maxRetries: {retries}}}}}"));
        }
        Threshold::Share { percent, least } => {
            text += &rule(&format!("retryBudget: {{percent: {percent}, minRetryConcurrency: {least}}}"));
        }
    }
    Ok(Exported { text, losses, next_steps: NEXT_STEPS.to_vec() })
}

/// The head of an object.
fn object(kind: &str) -> String {
    format!("apiVersion: networking.istio.io/v1\nkind: {kind}\nmetadata:\n  name: example\nspec:\n")
}
