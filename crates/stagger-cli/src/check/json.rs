use serde::Serialize;
use stagger_sim::lint::{Basis, Estimate, Finding};

use super::command::{CheckResult, LogResult, PolicyResult};
use crate::error::CliError;
use crate::output::to_json;

/// What `stagger check --json` prints: schema `stagger.check/1`.
///
/// Lengths of time are numbers of seconds. Later versions of the schema may add fields; what is here keeps its name and
/// its meaning.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "stagger.check/1"))]
struct Document<'a> {
    /// Always `stagger.check/1`.
    schema: &'static str,
    /// The policies that were checked; none where a log was.
    policies: Vec<PolicyEntry<'a>>,
    /// The log that was judged; null without one.
    log: Option<LogEntry<'a>>,
}

/// A policy and what was found in it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PolicyEntry<'a> {
    /// What `--policy` called it; null if it was given by flags alone.
    name: Option<&'a str>,
    /// The policy, in one line of the policy language.
    policy: String,
    /// What was found, by code.
    findings: Vec<FindingEntry<'a>>,
    /// The policy after all help; null where no help changes it.
    fixed: Option<String>,
    /// What the fleet will do that loses all of its connections at once; null unless its size and the capacity are
    /// known.
    estimate: Option<EstimateEntry>,
}

/// A log and what was found in it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LogEntry<'a> {
    /// Where it was read.
    name: &'a str,
    /// How many delays are in it.
    delays: usize,
    /// How many more were left out because they had been asked for.
    skipped_hints: usize,
    /// What it was held against; null without a policy.
    policy: Option<String>,
    /// What was found, by code.
    findings: Vec<FindingEntry<'a>>,
}

/// A finding.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FindingEntry<'a> {
    /// The rule's code, which never changes.
    rule: &'static str,
    /// The rule's name in words.
    name: &'static str,
    /// `warning` or `note`.
    severity: &'static str,
    /// What it is.
    title: &'static str,
    /// Its figures.
    facts: &'a [String],
    /// Why that matters.
    rationale: &'static str,
    /// What mends it.
    help: HelpEntry<'a>,
}

/// What mends a finding.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HelpEntry<'a> {
    /// Settings to be set in the policy, or a whole policy; null where it is not the policy's to mend.
    settings: Option<String>,
    /// The policy with these settings.
    policy: Option<String>,
    /// What helps besides, or instead.
    advice: Option<&'a str>,
}

/// What a fleet will do.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EstimateEntry {
    /// Nothing can bring all clients back sooner.
    min_recovery_s: f64,
    /// How often each client knocks on average; null where no closed form holds.
    attempts_per_client: Option<f64>,
    /// Where the figures are from: `closed-form`.
    basis: &'static str,
}

/// All of it as one line of JSON.
///
/// # Errors
/// It cannot be written.
pub(super) fn document(checked: &CheckResult) -> Result<String, CliError> {
    to_json(&Document::from(checked))
}

impl<'a> From<&'a CheckResult> for Document<'a> {
    fn from(checked: &'a CheckResult) -> Self {
        Self {
            schema: "stagger.check/1",
            policies: checked.policies.iter().map(PolicyEntry::from).collect(),
            log: checked.log.as_ref().map(LogEntry::from),
        }
    }
}

impl<'a> From<&'a PolicyResult> for PolicyEntry<'a> {
    fn from(checked: &'a PolicyResult) -> Self {
        Self {
            name: checked.name.as_deref(),
            policy: checked.policy.to_string(),
            findings: checked.findings.iter().map(FindingEntry::from).collect(),
            fixed: checked.fixed.map(|policy| policy.to_string()),
            estimate: checked.estimate.map(EstimateEntry::from),
        }
    }
}

impl<'a> From<&'a LogResult> for LogEntry<'a> {
    fn from(checked: &'a LogResult) -> Self {
        Self {
            name: &checked.name,
            delays: checked.log.entries.len(),
            skipped_hints: checked.log.asked,
            policy: checked.policy.map(|policy| policy.to_string()),
            findings: checked.findings.iter().map(FindingEntry::from).collect(),
        }
    }
}

impl<'a> From<&'a Finding> for FindingEntry<'a> {
    fn from(finding: &'a Finding) -> Self {
        let (rule, help) = (finding.rule(), finding.help());
        Self {
            rule: rule.code(),
            name: rule.name(),
            severity: rule.severity().name(),
            title: rule.title(),
            facts: finding.facts(),
            rationale: rule.why(),
            help: HelpEntry {
                settings: help.settings(),
                policy: help.policy().map(ToString::to_string),
                advice: help.advice(),
            },
        }
    }
}

impl From<Estimate> for EstimateEntry {
    fn from(estimate: Estimate) -> Self {
        Self {
            min_recovery_s: estimate.recovery_at_least.as_secs_f64(),
            attempts_per_client: estimate.attempts_per_client,
            basis: match estimate.basis {
                Basis::ClosedForm => "closed-form",
                _ => "other",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::published;

    /// After a change: `STAGGER_BLESS=1 cargo test -p stagger-cli schema`.
    #[test]
    fn the_published_schema_is_that_of_what_is_printed() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/check/stagger.check-1.schema.json");
        published::<Document<'_>>(path);
    }
}
