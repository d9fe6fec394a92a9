//! The advice as a document, and its policy as TOML and as Rust.

use serde::Serialize;
use stagger_core::Policy;
use stagger_lint::Finding;
use stagger_lint::advise::{
    Advice, Candidate, GuardFigures, GuardTrial, ParetoFront, Prediction, Recommendation, rust_code,
};
use stagger_sim::outage::{DefaultGuards, Verdict};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::to_json;

use super::commands;

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
    /// Recommended guards for the retries of all calls of a process together, as in `simulate outage --guards`:
    /// `tokens`, `window`, `success-rate`, `breaker`. Empty if none is needed, or if none could be simulated.
    guards: Vec<&'static str>,
    /// An outage under steady traffic, which the guards were chosen by; null unless policies were simulated, and for
    /// long-lived connections. Guards are tried for more than 1,000 clients.
    guard_trial: Option<GuardTrialEntry>,
    /// What `check` warns of in the policy with the guards. Empty unless there is no policy without a warning, or
    /// nothing could be simulated.
    warnings: Vec<WarningEntry>,
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
    /// The policy as TOML, with the recommended guards in a comment.
    toml: String,
    /// The policy as Rust code, in a retrier with the recommended guards if there are any; null if only the policy
    /// language can express it.
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

/// A warning of `check`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WarningEntry {
    /// Code of the rule: `S016`.
    rule: &'static str,
    /// Name of the rule.
    name: &'static str,
    /// What the rule has found.
    facts: Vec<String>,
    /// How to fix it.
    help: String,
}

/// A server that stalls, with the policy alone and with the recommended guards in each client.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GuardTrialEntry {
    /// Number of simulated clients. A large fleet is simulated in proportion.
    processes: u32,
    /// Requests per second.
    rate: f64,
    /// Capacity of the simulated server per second.
    capacity: f64,
    /// Number of requests that may queue at the server.
    backlog: u32,
    /// Start of the stall.
    start_s: f64,
    /// Length of the stall.
    stall_s: f64,
    /// End of the simulation, from its start.
    horizon_s: f64,
    /// Number of runs over which the figures are averaged.
    runs: u32,
    /// The command that simulates both.
    command: Option<String>,
    /// The policy alone.
    without: GuardFiguresEntry,
    /// The policy with the recommended guards; the same as `without` if there are none.
    with: GuardFiguresEntry,
}

/// The behavior after the stall.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GuardFiguresEntry {
    /// The worst verdict of all runs: `never fell`, `recovered`, `relapsed`, `still down`.
    verdict: &'static str,
    /// Time from the end of the stall until the server has recovered; null if it did not in one of the runs.
    recovery_s: Option<f64>,
    /// Share of the requests from the start of the stall that succeeded.
    success_ratio: f64,
}

/// Policies of which each is better than every other one in at least one figure.
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
    /// Lower bound of the time from the end of the outage until all clients have recovered, for any policy.
    min_recovery_s: f64,
    /// The outages that every policy was judged on: the given one or all usual ones, others between them, and others up
    /// to a quarter beyond the longest.
    outages_s: Vec<f64>,
    /// What was searched.
    searched: String,
    /// The command that simulates the recommended policy.
    command: Option<String>,
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
    /// Maximum number of attempts that arrive in one second, in any of the outages.
    peak_1s: f64,
    /// Time from the end of the outage until 99 % of the clients have recovered, the longest of all outages; null if
    /// they never do.
    recovered_p99_s: Option<f64>,
    /// Mean number of attempts per client, over the outages that every policy was judged on.
    attempts_per_client: f64,
    /// Share of the clients that recover, the smallest of all outages.
    recovered_ratio: f64,
    /// The same figures for each of the outages, and for those just after attempts of this policy.
    by_outage: Vec<OutageEntry>,
}

/// The predicted results of a policy in one outage.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OutageEntry {
    /// Length of the outage.
    outage_s: f64,
    /// Maximum number of attempts that arrive in one second.
    peak_1s: f64,
    /// Time from the end of the outage until 99 % of the clients have recovered; null if they never do.
    recovered_p99_s: Option<f64>,
    /// Mean number of attempts per client.
    attempts_per_client: f64,
    /// Share of the clients that recover.
    recovered_ratio: f64,
}

/// Returns the advice as one line of JSON.
pub(super) fn document(advice: &Advice, seed: u64) -> Result<String, CliError> {
    let guards = advice.guards();
    let policy_text = |policy: &Policy| {
        Ok(PolicyText { line: policy.to_string(), toml: toml(policy, guards)?, rust: rust(policy, guards) })
    };
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
        guards: Some(guards).filter(|guards| *guards != DefaultGuards::None).map(|it| it.name()).into_iter().collect(),
        guard_trial: advice.guard_trial().map(|trial| guard_trial_entry(trial, advice.policy(), seed)),
        warnings: advice.warnings().iter().map(warning_entry).collect(),
        reasons: reasons.collect(),
        pareto_front: advice.front().map(|front| front_entry(front, seed)),
        seed,
    })
}

/// Returns a policy as TOML, ready for a policy file, with the guards in a comment.
pub(super) fn toml(policy: &Policy, guards: DefaultGuards) -> Result<String, CliError> {
    let text = toml::to_string(policy)
        .map_err(|error| CliError::io("cannot write the policy as TOML", std::io::Error::other(error)))?;
    Ok(match guards {
        DefaultGuards::None => text,
        guards => format!("{text}# with guards in each process: {}\n", guards.name()),
    })
}

/// Returns a policy as Rust code, in a retrier if there are guards.
pub(super) fn rust(policy: &Policy, guards: DefaultGuards) -> Option<String> {
    let code = rust_code(policy)?;
    Some(match guards {
        DefaultGuards::None => code,
        guards => format!("Retrier::new({code}){}", guards.rust_code()),
    })
}

fn guard_trial_entry(trial: &GuardTrial, policy: Option<&Policy>, seed: u64) -> GuardTrialEntry {
    let entry = |figures: &GuardFigures| GuardFiguresEntry {
        verdict: match figures.verdict {
            Verdict::NeverFell => "never fell",
            Verdict::Recovered { .. } => "recovered",
            Verdict::Relapsed { .. } => "relapsed",
            _ => "still down",
        },
        recovery_s: figures.recovery.map(|recovery| recovery.as_secs_f64()),
        success_ratio: figures.success_ratio,
    };
    GuardTrialEntry {
        processes: trial.processes,
        rate: trial.rate,
        capacity: trial.capacity,
        backlog: trial.backlog,
        start_s: trial.start.as_secs_f64(),
        stall_s: trial.stall.as_secs_f64(),
        horizon_s: trial.horizon.as_secs_f64(),
        runs: trial.runs,
        command: policy.and_then(|policy| commands::guards(trial, policy, seed)),
        without: entry(&trial.without),
        with: entry(&trial.with),
    }
}

fn warning_entry(found: &Finding) -> WarningEntry {
    let (rule, help) = (found.rule(), found.suggestion().to_string());
    WarningEntry { rule: rule.code(), name: rule.name(), facts: found.facts().to_vec(), help }
}

fn front_entry(front: &ParetoFront, seed: u64) -> FrontEntry {
    let outage = |(outage, predicted): &(core::time::Duration, Prediction)| OutageEntry {
        outage_s: outage.as_secs_f64(),
        peak_1s: predicted.peak_second,
        recovered_p99_s: predicted.recovery.map(|recovery| recovery.as_secs_f64()),
        attempts_per_client: predicted.attempts_per_client,
        recovered_ratio: predicted.recovered_ratio,
    };
    let candidate = |candidate: &Candidate| CandidateEntry {
        policy: candidate.policy.to_string(),
        recommended: candidate == front.best(),
        peak_1s: candidate.predicted.peak_second,
        recovered_p99_s: candidate.predicted.recovery.map(|recovery| recovery.as_secs_f64()),
        attempts_per_client: candidate.predicted.attempts_per_client,
        recovered_ratio: candidate.predicted.recovered_ratio,
        by_outage: candidate.by_outage.iter().map(outage).collect(),
    };
    FrontEntry {
        simulated_clients: front.simulated_clients,
        runs: front.runs,
        tried_policies: front.tried_policies,
        min_recovery_s: front.min_recovery_time.as_secs_f64(),
        outages_s: front.outages.iter().map(core::time::Duration::as_secs_f64).collect(),
        searched: front.searched.clone(),
        command: commands::disconnect(front, seed),
        candidates: front.candidates.iter().map(candidate).collect(),
    }
}

#[cfg(test)]
mod tests {
    use stagger::breaker::CircuitBreaker;
    use stagger::budget::{BudgetError, SuccessRate, Throttle, Tokens, Window};
    use stagger::{Ratio, Retrier, policy};

    use super::*;
    use stagger_kit::assert_published_schema;

    /// The guards, an expression that compiles, and its tokens.
    macro_rules! compiled {
        ($guards:ident, $($tokens:tt)+) => {
            (DefaultGuards::$guards, $($tokens)+, stringify!($($tokens)+))
        };
    }

    #[test]
    fn the_printed_rust_compiles_and_makes_the_policy() -> Result<(), BudgetError> {
        for (guards, retrier, code) in [
            compiled!(
                Tokens,
                Retrier::new(policy!(constant(ms(1400)).jitter(Jitter::Full).max_attempts(3).max_elapsed(secs(2))))
                    .budget(Tokens::new())
            ),
            compiled!(Window, Retrier::new(policy!(constant(ms(9)).max_attempts(2))).budget(Window::new())),
            compiled!(
                Throttle,
                Retrier::new(policy!(constant(ms(9)).max_attempts(2))).budget(Throttle::new(10, Ratio::percent(10))?)
            ),
            compiled!(
                SuccessRate,
                Retrier::new(policy!(exponential(secs(1), secs(9)).multiplier(1.5).max_attempts(3).max_hint(secs(10))))
                    .budget(SuccessRate::new())
            ),
            compiled!(
                Breaker,
                Retrier::new(policy!(decorrelated(secs(1), secs(9)).max_attempts(3)))
                    .breaker(CircuitBreaker::new(stagger::seed()))
            ),
        ] {
            let printed = rust(retrier.policy(), guards).unwrap();
            let tokens = |code: &str| code.replace([' ', '\n'], "").replace(",)", ")");
            assert_eq!(tokens(&printed), tokens(code));
        }
        Ok(())
    }

    #[test]
    fn the_published_schema_matches_the_output() {
        assert_published_schema::<Document<'_>>(env!("CARGO_MANIFEST_DIR"), "src/advise/stagger.advise-1.schema.json");
    }
}
