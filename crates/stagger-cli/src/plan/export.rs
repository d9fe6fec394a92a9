use clap::ValueEnum;
use stagger_core::Policy;
use stagger_http::grpc::Codes;
use stagger_http::service_config::{AttemptPolicy, MethodConfig, MethodName, MethodRetries, ServiceConfig};

use crate::error::CliError;

/// Whose configuration a policy is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Export {
    /// A service config: the retryPolicy of every gRPC library
    Grpc,
}

/// A policy as somebody else's configuration.
pub(super) struct Exported {
    pub(super) text: String,
    /// What the configuration cannot say, and what is left to do.
    pub(super) notes: Vec<String>,
}

/// What the codes of a policy and the names of its methods are, the policy does not say.
const LEFT_TO_DO: [&str; 2] = [
    "it retries every method after UNAVAILABLE: name the methods that may be carried out twice, and their codes",
    "give it to the channel, which then retries by itself and knows what the server has seen; retry nothing above it",
];

impl Export {
    /// # Errors
    /// The policy is one that the other cannot follow.
    pub(super) fn policy(self, policy: &Policy) -> Result<Exported, CliError> {
        match self {
            Self::Grpc => grpc(policy),
        }
    }
}

fn grpc(policy: &Policy) -> Result<Exported, CliError> {
    let refused = |error| CliError::usage(format_args!("--export grpc: {error}"));
    let (retries, unsaid) = MethodRetries::from_policy(policy, Codes::UNAVAILABLE).map_err(refused)?;
    let every = MethodConfig::new([MethodName::All], AttemptPolicy::Retry(retries));
    let config = ServiceConfig::new(vec![every]).map_err(refused)?;
    let lost = unsaid.iter().map(|unsaid| format!("left out: {unsaid}"));
    Ok(Exported { text: format!("{config}\n"), notes: lost.chain(LEFT_TO_DO.map(str::to_owned)).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(policy: &str) -> Vec<String> {
        Export::Grpc.policy(&policy.parse().unwrap()).unwrap().notes
    }

    #[test]
    fn what_grpc_cannot_say_is_noted_and_nothing_else() {
        assert_eq!(notes("grpc-a6"), LEFT_TO_DO);
        let lost = notes("grpc-a6 jitter=full max-elapsed=1m");
        assert_eq!(lost.len(), 4, "{lost:?}");
        assert_eq!(lost[0], "left out: jitter=full: gRPC draws within ±20% of the ceiling");
        assert!(lost[1].starts_with("left out: max-elapsed=1m: "), "{lost:?}");
    }

    #[test]
    fn what_is_exported_is_read_as_the_policy_that_it_was() {
        let exported = Export::Grpc.policy(&"grpc-a6 base=250ms cap=3s".parse().unwrap()).unwrap();
        let config: ServiceConfig = exported.text.parse().unwrap();
        let AttemptPolicy::Retry(retries) = config.methods()[0].attempt_policy() else { panic!("{}", exported.text) };
        assert_eq!(*retries.policy(), "grpc-a6 base=250ms cap=3s".parse().unwrap());
    }
}
