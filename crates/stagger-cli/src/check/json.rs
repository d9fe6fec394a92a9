use serde::Serialize;
use stagger_sim::lint::{Basis, Estimate, Finding};

use super::command::{Checked, CheckedLog, CheckedPolicy};
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
    policies: Vec<OfPolicy<'a>>,
    /// The log that was judged; null without one.
    log: Option<OfLog<'a>>,
}

/// A policy and what was found in it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfPolicy<'a> {
    /// What `--policy` called it; null if it was given by flags alone.
    name: Option<&'a str>,
    /// The policy, in one line of the policy language.
    policy: String,
    /// What was found, by code.
    findings: Vec<Found<'a>>,
    /// The policy after all help; null where no help changes it.
    mended: Option<String>,
    /// What the fleet will do that loses all of its connections at once; null unless its size and the capacity are
    /// known.
    estimate: Option<Forecast>,
}

/// A log and what was found in it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfLog<'a> {
    /// Where it was read.
    name: &'a str,
    /// How many delays are in it.
    delays: usize,
    /// How many more were left out because they had been asked for.
    asked: usize,
    /// What it was held against; null without a policy.
    policy: Option<String>,
    /// What was found, by code.
    findings: Vec<Found<'a>>,
}

/// A finding.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Found<'a> {
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
    why: &'static str,
    /// What mends it.
    help: Mending<'a>,
}

/// What mends a finding.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Mending<'a> {
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
struct Forecast {
    /// Nothing can bring all clients back sooner.
    recovery_at_least_s: f64,
    /// How often each client knocks on average; null where no closed form holds.
    attempts_per_client: Option<f64>,
    /// Where the figures are from: `closed-form`.
    basis: &'static str,
}

/// All of it as one line of JSON.
///
/// # Errors
/// It cannot be written.
pub(super) fn document(checked: &Checked) -> Result<String, CliError> {
    to_json(&Document::from(checked))
}

impl<'a> From<&'a Checked> for Document<'a> {
    fn from(checked: &'a Checked) -> Self {
        Self {
            schema: "stagger.check/1",
            policies: checked.policies.iter().map(OfPolicy::from).collect(),
            log: checked.log.as_ref().map(OfLog::from),
        }
    }
}

impl<'a> From<&'a CheckedPolicy> for OfPolicy<'a> {
    fn from(checked: &'a CheckedPolicy) -> Self {
        Self {
            name: checked.name.as_deref(),
            policy: checked.policy.to_string(),
            findings: checked.findings.iter().map(Found::from).collect(),
            mended: checked.mended.map(|policy| policy.to_string()),
            estimate: checked.estimate.map(Forecast::from),
        }
    }
}

impl<'a> From<&'a CheckedLog> for OfLog<'a> {
    fn from(checked: &'a CheckedLog) -> Self {
        Self {
            name: &checked.name,
            delays: checked.log.entries.len(),
            asked: checked.log.asked,
            policy: checked.policy.map(|policy| policy.to_string()),
            findings: checked.findings.iter().map(Found::from).collect(),
        }
    }
}

impl<'a> From<&'a Finding> for Found<'a> {
    fn from(finding: &'a Finding) -> Self {
        let (rule, help) = (finding.rule(), finding.help());
        Self {
            rule: rule.code(),
            name: rule.name(),
            severity: rule.severity().name(),
            title: rule.title(),
            facts: finding.facts(),
            why: rule.why(),
            help: Mending {
                settings: help.settings(),
                policy: help.policy().map(ToString::to_string),
                advice: help.advice(),
            },
        }
    }
}

impl From<Estimate> for Forecast {
    fn from(estimate: Estimate) -> Self {
        Self {
            recovery_at_least_s: estimate.recovery_at_least.as_secs_f64(),
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
    use crate::output::assert_published_schema;

    /// After a change: `STAGGER_BLESS=1 cargo test -p stagger-cli schema`.
    #[test]
    fn the_published_schema_is_that_of_what_is_printed() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/check/stagger.check-1.schema.json");
        assert_published_schema::<Document<'_>>(path);
    }
}
