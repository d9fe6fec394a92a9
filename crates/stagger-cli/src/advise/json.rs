use serde::Serialize;
use stagger_core::Policy;
use stagger_sim::advise::{Advice, Candidate, ParetoFront, Recommendation, RecommendedGuards, rust_code};

use crate::output::error::CliError;
use crate::output::write::to_json;

/// Output of `stagger advise --json`: schema `stagger.advise/1`.
///
/// Durations are in seconds, ratios between 0 and 1. Later versions of the schema may add fields; existing fields keep
/// their names and meanings.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "stagger.advise/1"))]
struct Document<'a> {
    /// Always `stagger.advise/1`.
    schema: &'static str,
    /// `retry`; `hedge`, send a second copy of a slow request and do not retry; or `do-not-retry`.
    recommendation: &'static str,
    /// The recommended policy; null unless the recommendation is `retry`.
    policy: Option<PolicyText>,
    /// Recommended guards for the retries of all calls together: `budget`, `breaker`.
    guards: &'static [&'static str],
    /// The answers that led to the recommendation, in the order of the questions.
    reasons: Vec<ReasonEntry<'a>>,
    /// Simulated policies; null unless the number of clients, at least ten, and the capacity of their server are known.
    pareto_front: Option<FrontEntry>,
    /// Seed of the simulation, to reproduce it.
    seed: u64,
}

/// A policy in each of its text forms.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PolicyText {
    /// The policy in one line of the policy language.
    line: String,
    /// The policy as TOML.
    toml: String,
    /// The policy as Rust code; null if only the policy language can express it.
    rust: Option<String>,
}

/// An answer and its consequence.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ReasonEntry<'a> {
    /// Name of the question, which is also the name of the flag.
    question: &'static str,
    /// The answer; null if none was given.
    answer: Option<&'a str>,
    /// What follows from the answer.
    conclusion: &'a str,
}

/// Policies that no other policy beats in both recovery time and peak load.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FrontEntry {
    /// Number of clients in the simulation. For larger fleets the figures are scaled up in proportion, which makes the
    /// peak somewhat too high.
    simulated_clients: u64,
    /// Number of runs over which the figures are averaged.
    runs: u32,
    /// Number of policies that were tried.
    tried_policies: usize,
    /// Lower bound of the time until all clients have recovered, for any policy.
    min_recovery_s: f64,
    /// The policies, by ascending peak.
    candidates: Vec<CandidateEntry>,
}

/// A policy and its predicted results.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CandidateEntry {
    /// The policy in one line of the policy language.
    policy: String,
    /// Whether this is the recommended policy.
    recommended: bool,
    /// Maximum number of attempts that arrive in one second.
    peak_1s: f64,
    /// Time from the start until 99 % of the clients have recovered; null if they never do.
    recovered_p99_s: Option<f64>,
    /// Mean number of attempts per client.
    attempts_per_client: f64,
    /// Share of the clients that recover.
    recovered_ratio: f64,
}

/// Returns the advice as one line of JSON.
pub(super) fn document(advice: &Advice, seed: u64) -> Result<String, CliError> {
    let policy_text =
        |policy: &Policy| Ok(PolicyText { line: policy.to_string(), toml: toml(policy)?, rust: rust_code(policy) });
    let reasons = advice.reasons().iter().map(|reason| ReasonEntry {
        question: reason.question.name(),
        answer: reason.answer.as_deref(),
        conclusion: &reason.conclusion,
    });
    to_json(&Document {
        schema: "stagger.advise/1",
        recommendation: match advice.recommendation() {
            Recommendation::Retry => "retry",
            Recommendation::Hedge => "hedge",
            _ => "do-not-retry",
        },
        policy: advice.policy().map(policy_text).transpose()?,
        guards: match advice.guards() {
            RecommendedGuards::BudgetAndBreaker => &["budget", "breaker"],
            _ => &[],
        },
        reasons: reasons.collect(),
        pareto_front: advice.front().map(front_entry),
        seed,
    })
}

/// Returns a policy as TOML, ready for a policy file.
pub(super) fn toml(policy: &Policy) -> Result<String, CliError> {
    toml::to_string(policy)
        .map_err(|error| CliError::io("cannot write the policy as TOML", std::io::Error::other(error)))
}

fn front_entry(front: &ParetoFront) -> FrontEntry {
    let candidate = |candidate: &Candidate| CandidateEntry {
        policy: candidate.policy.to_string(),
        recommended: candidate == front.best(),
        peak_1s: candidate.predicted.peak_second,
        recovered_p99_s: candidate.predicted.recovery.map(|recovery| recovery.as_secs_f64()),
        attempts_per_client: candidate.predicted.attempts_per_client,
        recovered_ratio: candidate.predicted.recovered_ratio,
    };
    FrontEntry {
        simulated_clients: front.simulated_clients,
        runs: front.runs,
        tried_policies: front.tried_policies,
        min_recovery_s: front.min_recovery_time.as_secs_f64(),
        candidates: front.candidates.iter().map(candidate).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::write::assert_published_schema;

    #[test]
    fn the_published_schema_matches_the_output() {
        assert_published_schema::<Document<'_>>("advise/stagger.advise-1.schema.json");
    }
}
