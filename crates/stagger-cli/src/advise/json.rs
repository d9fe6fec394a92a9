use serde::Serialize;
use stagger_core::Policy;
use stagger_sim::advise::{Advice, Candidate, Front, Guarding, Reason, Verdict, rust};

use crate::error::CliError;
use crate::output::to_json;

/// What `stagger advise --json` prints: schema `stagger.advise/1`.
///
/// Lengths of time are numbers of seconds, shares are within 0 and 1. Later versions of the schema may add fields; what is
/// here keeps its name and its meaning.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "stagger.advise/1"))]
struct Document<'a> {
    /// Always `stagger.advise/1`.
    schema: &'static str,
    /// `retry`; `hedge`: send a second copy of what is slow, and do not retry; or `do-not-retry`.
    verdict: &'static str,
    /// The policy that is advised; null unless the verdict is `retry`.
    policy: Option<Spelled>,
    /// What should bound the retries of all calls together: `budget`, `breaker`.
    guards: &'static [&'static str],
    /// Which answers decided, in the order of the questions.
    reasons: Vec<Because<'a>>,
    /// What was computed; null unless it is known how many clients there are, ten or more, and what their server takes.
    front: Option<Computed>,
    /// Draws what was simulated again.
    seed: u64,
}

/// A policy in each of its forms.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Spelled {
    /// In one line of the policy language.
    line: String,
    /// In TOML.
    toml: String,
    /// In Rust; null where only its text can say it.
    rust: Option<String>,
}

/// An answer, and what follows from it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Because<'a> {
    /// The name of the question, which is that of the flag.
    question: &'static str,
    /// The answer; null if it was not given.
    answer: Option<&'a str>,
    /// What follows.
    therefore: &'a str,
}

/// Policies that nothing beats.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Computed {
    /// With how many clients the figures were simulated; of larger fleets they are in proportion, the peak
    /// somewhat too high.
    simulated_clients: u64,
    /// Figures are means of so many runs.
    runs: u32,
    /// How many policies were tried in all.
    tried: usize,
    /// Nothing brings all clients back sooner.
    recovery_at_least_s: f64,
    /// By their peak, the lowest first.
    candidates: Vec<Figures>,
}

/// A policy, and what it would do.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Figures {
    /// The policy, in one line of the policy language.
    policy: String,
    /// Whether it is the one that is advised.
    best: bool,
    /// The most attempts that arrive in a second.
    peak_1s: f64,
    /// When 99 % of the clients are back, from the beginning; null if they never are.
    recovered_p99_s: Option<f64>,
    /// Attempts for each client.
    attempts_per_client: f64,
    /// The share of the clients that comes back.
    back: f64,
}

/// All of it as one line of JSON.
///
/// # Errors
/// It cannot be written.
pub(super) fn document(advice: &Advice, seed: u64) -> Result<String, CliError> {
    to_json(&Document {
        schema: "stagger.advise/1",
        verdict: match advice.verdict() {
            Verdict::Retry => "retry",
            Verdict::Hedge => "hedge",
            _ => "do-not-retry",
        },
        policy: advice.policy().map(Spelled::new).transpose()?,
        guards: match advice.guarding() {
            Guarding::BudgetAndBreaker => &["budget", "breaker"],
            _ => &[],
        },
        reasons: advice.reasons().iter().map(Because::from).collect(),
        front: advice.front().map(Computed::from),
        seed,
    })
}

/// A policy in TOML, ready for a file.
///
/// # Errors
/// It cannot be written.
pub(super) fn toml(policy: &Policy) -> Result<String, CliError> {
    toml::to_string(policy).map_err(|error| CliError::io("cannot write TOML", std::io::Error::other(error)))
}

impl Spelled {
    fn new(policy: &Policy) -> Result<Self, CliError> {
        Ok(Self { line: policy.to_string(), toml: toml(policy)?, rust: rust(policy) })
    }
}

impl<'a> From<&'a Reason> for Because<'a> {
    fn from(reason: &'a Reason) -> Self {
        Self { question: reason.question.name(), answer: reason.answer.as_deref(), therefore: &reason.therefore }
    }
}

impl From<&Front> for Computed {
    fn from(front: &Front) -> Self {
        let figures = |candidate: &Candidate| Figures {
            policy: candidate.policy.to_string(),
            best: candidate == front.best(),
            peak_1s: candidate.predicted.peak_second,
            recovered_p99_s: candidate.predicted.recovery.map(|recovery| recovery.as_secs_f64()),
            attempts_per_client: candidate.predicted.attempts_per_client,
            back: candidate.predicted.back,
        };
        Self {
            simulated_clients: front.simulated,
            runs: front.runs,
            tried: front.tried,
            recovery_at_least_s: front.least_recovery.as_secs_f64(),
            candidates: front.candidates.iter().map(figures).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::assert_published_schema;

    /// After a change: `STAGGER_BLESS=1 cargo test -p stagger-cli schema`.
    #[test]
    fn the_published_schema_is_that_of_what_is_printed() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/advise/stagger.advise-1.schema.json");
        assert_published_schema::<Document<'_>>(path);
    }
}
