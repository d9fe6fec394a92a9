use clap::ValueEnum;
use stagger_config::export::{Circumstances, System, export};
use stagger_core::Policy;

use stagger_terminal::output::error::CliError;

/// The system to export a policy to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Export {
    /// gRPC service config with a retryPolicy, for all gRPC libraries
    Grpc,
    /// Route of Envoy with a retry_policy
    Envoy,
    /// VirtualService of Istio
    Istio,
}

/// A policy as the configuration of another system.
pub(crate) struct Exported {
    pub(crate) text: String,
    /// Settings without an equivalent, and next steps.
    pub(crate) notes: Vec<String>,
}

impl Export {
    const fn system(self) -> System {
        match self {
            Self::Grpc => System::Grpc,
            Self::Envoy => System::Envoy,
            Self::Istio => System::Istio,
        }
    }

    /// Exports a policy with its circumstances, unless the system cannot represent it.
    pub(crate) fn policy(self, policy: &Policy, circumstances: &Circumstances) -> Result<Exported, CliError> {
        let name = self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let exported = export(self.system(), policy, circumstances)
            .map_err(|error| CliError::usage(format_args!("--export {name}: {error}")))?;
        let lost = exported.losses.iter().map(|lost| format!("not exported: {lost}"));
        let notes = lost.chain(exported.next_steps.into_iter().map(str::to_owned)).collect();
        Ok(Exported { text: exported.text, notes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(policy: &str) -> Vec<String> {
        Export::Grpc.policy(&policy.parse().unwrap(), &Circumstances::default()).unwrap().notes
    }

    #[test]
    fn settings_without_a_grpc_equivalent_are_noted() {
        let steps = notes("grpc-a6");
        assert_eq!(steps.len(), 2, "{steps:?}");
        let lost = notes("grpc-a6 jitter=full max-elapsed=1m");
        assert_eq!(lost[2..], steps, "{lost:?}");
        assert_eq!(lost[0], "not exported: jitter=full: gRPC draws within ±20% of the ceiling");
        assert!(lost[1].starts_with("not exported: max-elapsed=1m: "), "{lost:?}");
    }

    #[test]
    fn an_exported_policy_is_read_again() {
        for (system, policy) in [
            (Export::Grpc, "exponential base=250ms cap=3s jitter=±20% max-attempts=4"),
            (Export::Envoy, "exponential base=250ms cap=3s jitter=envoy max-attempts=3"),
            (Export::Istio, "exponential base=50ms cap=500ms jitter=envoy max-attempts=7"),
        ] {
            let policy: Policy = policy.parse().unwrap();
            let exported = system.policy(&policy, &Circumstances::default()).unwrap();
            let entries = stagger_config::read(&exported.text, None).unwrap();
            assert_eq!(entries[0].policy(), Some(policy), "{}", exported.text);
        }
    }
}
