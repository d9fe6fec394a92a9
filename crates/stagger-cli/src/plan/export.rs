use clap::ValueEnum;
use stagger_core::Policy;
use stagger_http::grpc::Codes;
use stagger_http::service_config::{AttemptPolicy, MethodConfig, MethodName, MethodRetries, ServiceConfig};

use crate::output::error::CliError;

/// The system to export a policy to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Export {
    /// gRPC service config with a retryPolicy, for all gRPC libraries
    Grpc,
}

/// A policy as the configuration of another system.
pub(super) struct Exported {
    pub(super) text: String,
    /// Settings without an equivalent, and next steps.
    pub(super) notes: Vec<String>,
}

/// Next steps after an export: a policy contains neither status codes nor method names.
const NEXT_STEPS: [&str; 2] = [
    "this config retries every method after UNAVAILABLE; restrict it to idempotent methods, and set their status codes",
    "pass the config to the channel, which retries by itself and knows what the server has processed; do not retry above it",
];

impl Export {
    /// Exports a policy, unless the system cannot represent it.
    pub(super) fn policy(self, policy: &Policy) -> Result<Exported, CliError> {
        let Self::Grpc = self;
        let refused = |error| CliError::usage(format_args!("--export grpc: {error}"));
        let (retries, lost) = MethodRetries::from_policy(policy, Codes::UNAVAILABLE).map_err(refused)?;
        let every = MethodConfig::new([MethodName::All], AttemptPolicy::Retry(retries));
        let config = ServiceConfig::new(vec![every]).map_err(refused)?;
        let lost = lost.iter().map(|lost| format!("not exported: {lost}"));
        Ok(Exported { text: format!("{config}\n"), notes: lost.chain(NEXT_STEPS.map(str::to_owned)).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(policy: &str) -> Vec<String> {
        Export::Grpc.policy(&policy.parse().unwrap()).unwrap().notes
    }

    #[test]
    fn settings_without_a_grpc_equivalent_are_noted() {
        assert_eq!(notes("grpc-a6"), NEXT_STEPS);
        let lost = notes("grpc-a6 jitter=full max-elapsed=1m");
        assert_eq!(lost.len(), 4, "{lost:?}");
        assert_eq!(lost[0], "not exported: jitter=full: gRPC draws within ±20% of the ceiling");
        assert!(lost[1].starts_with("not exported: max-elapsed=1m: "), "{lost:?}");
    }

    #[test]
    fn an_exported_policy_is_parsed_back() {
        let exported = Export::Grpc.policy(&"grpc-a6 base=250ms cap=3s".parse().unwrap()).unwrap();
        let config: ServiceConfig = exported.text.parse().unwrap();
        let AttemptPolicy::Retry(retries) = config.methods()[0].attempt_policy() else { panic!("{}", exported.text) };
        assert_eq!(*retries.policy(), "grpc-a6 base=250ms cap=3s".parse().unwrap());
    }
}
