//! The findings as a document.

use serde::Serialize;
use stagger_core::Policy;
use stagger_lint::{DeploymentContext, Edit, Estimate, FileFinding, Finding, Place};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::to_json;

use super::files::{FileResult, Note, UnusedFlag};
use super::result::{CheckResult, LogResult, PolicyResult};

/// Output of `stagger check --json`: schema `stagger.check/1`.
///
/// Durations are in seconds. Later versions of the schema may add fields; existing fields keep their names and
/// meanings.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "stagger.check/1"))]
struct Document<'a> {
    /// Always `stagger.check/1`.
    schema: &'static str,
    /// The policies that were checked; empty if a log or only files were checked.
    policies: Vec<PolicyEntry<'a>>,
    /// The files that were checked.
    files: Vec<FileEntry<'a>>,
    /// The log that was checked; null if there is none.
    log: Option<LogEntry<'a>>,
    /// Number of findings that the file of `--baseline` has, which are not listed.
    known_findings: usize,
}

/// A policy and its findings.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PolicyEntry<'a> {
    /// Value of `--policy` or the positional argument; null if the policy was given by flags alone.
    name: Option<&'a str>,
    /// The policy, in one line of the policy language.
    policy: String,
    /// Findings, ordered by code.
    findings: Vec<FindingEntry<'a>>,
    /// The policy with all suggestions applied; null if they do not change it.
    fixed: Option<String>,
    /// Estimated results of a mass disconnect of the fleet; null unless its size and the capacity are known.
    estimate: Option<EstimateEntry>,
}

/// A file and its findings.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FileEntry<'a> {
    /// Name of the file, or `standard input`.
    name: &'a str,
    /// What the file is, such as `system of services`.
    kind: &'a str,
    /// Findings, ordered by code, or by their place.
    findings: Vec<PlacedEntry<'a>>,
    /// Context flags that have no effect on this file.
    unused_flags: Vec<UnusedFlagEntry>,
    /// What else was read, in the order of the file.
    notes: Vec<NoteEntry<'a>>,
}

/// What a reader has noticed in a file, beside the findings.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NoteEntry<'a> {
    /// `unmapped` if the field has an effect that cannot be said as a policy; `not-read` if the file refers to something that
    /// has not been read; `fact` for what is worth knowing.
    kind: &'static str,
    /// Path of the field within the file.
    path: &'a str,
    place: PlaceEntry,
    /// What the system does by it.
    text: &'a str,
}

/// A context flag that has no effect on a file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UnusedFlagEntry {
    /// The flag, such as `--lease`.
    flag: String,
    /// Why it has no effect.
    reason: &'static str,
}

/// A finding in a file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PlacedEntry<'a> {
    #[serde(flatten)]
    finding: FindingEntry<'a>,
    /// Path of the value within the file, such as `edge.orders-database.timeout`.
    path: &'a str,
    /// Place of the value, or of the part of the file that would have it; null if the file has neither.
    place: Option<PlaceEntry>,
    /// Change of the file; null if there is none.
    fix: Option<FixEntry<'a>>,
}

/// A part of a file. Lines and columns count from 1, columns in characters; the end is exclusive.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PlaceEntry {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

/// A change of a file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FixEntry<'a> {
    /// What the file should say, in its own syntax.
    text: &'a str,
    /// Parts of the file to replace; empty if the change is left to people.
    edits: Vec<EditEntry<'a>>,
}

/// A part of a file, and what is to be written in its place.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EditEntry<'a> {
    place: PlaceEntry,
    text: &'a str,
}

/// A log and its findings.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LogEntry<'a> {
    /// Name of the log file, or `standard input`.
    name: &'a str,
    /// Number of delays that were checked.
    delays: usize,
    /// Number of delays that were skipped because a server hint determined them.
    skipped_hints: usize,
    /// Policy that the delays were compared with; null if none is known.
    policy: Option<String>,
    /// Findings, ordered by code.
    findings: Vec<FindingEntry<'a>>,
    /// What there are too few delays for, if there are no findings for that reason.
    too_few: Option<String>,
}

/// A finding.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FindingEntry<'a> {
    /// Code of the rule, which never changes.
    rule: &'static str,
    /// Name of the rule.
    name: &'static str,
    /// `warning` or `note`.
    severity: &'static str,
    /// What the rule finds.
    title: &'static str,
    /// Figures of this finding.
    facts: &'a [String],
    /// Why the finding matters.
    rationale: &'static str,
    /// How to fix it.
    help: HelpEntry<'a>,
}

/// How to fix a finding.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HelpEntry<'a> {
    /// Settings to change in the policy, or a whole policy; null if changing the policy does not help.
    settings: Option<String>,
    /// The policy with these settings; null if changing the policy does not help.
    policy: Option<String>,
    /// What helps in addition, or instead.
    advice: Option<&'a str>,
}

/// Estimated results of a mass disconnect.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EstimateEntry {
    /// Lower bound of the time until all clients have recovered, for any policy.
    min_recovery_s: f64,
    /// Mean number of attempts per client; null if the fluid model does not apply.
    attempts_per_client: Option<f64>,
    /// Share of the clients that give up; null if the fluid model does not apply.
    gave_up_ratio: Option<f64>,
}

/// Returns the result as one line of JSON.
pub(super) fn document(checked: &CheckResult) -> Result<String, CliError> {
    to_json(&Document {
        schema: "stagger.check/1",
        policies: checked.policies.iter().map(policy_entry).collect(),
        files: checked.files.iter().map(file_entry).collect(),
        log: checked.log.as_ref().map(log_entry),
        known_findings: checked.known,
    })
}

/// Returns the entry of a policy in the document.
pub(crate) fn findings_of(policy: Policy, context: &DeploymentContext) -> Result<serde_json::Value, CliError> {
    let checked = PolicyResult::of(policy, context, &[]);
    serde_json::to_value(policy_entry(&checked)).map_err(|error| CliError::io("cannot write JSON", error))
}

fn policy_entry(checked: &PolicyResult) -> PolicyEntry<'_> {
    let estimate = |estimate: Estimate| EstimateEntry {
        min_recovery_s: estimate.min_recovery_time.as_secs_f64(),
        attempts_per_client: estimate.attempts_per_client,
        gave_up_ratio: estimate.gave_up_ratio,
    };
    PolicyEntry {
        name: checked.name.as_deref(),
        policy: checked.policy.to_string(),
        findings: checked.findings.iter().map(finding_entry).collect(),
        fixed: checked.fixed.map(|policy| policy.to_string()),
        estimate: checked.estimate.map(estimate),
    }
}

fn file_entry(checked: &FileResult) -> FileEntry<'_> {
    FileEntry {
        name: &checked.name,
        kind: &checked.kind,
        findings: checked.findings.iter().map(placed_entry).collect(),
        unused_flags: checked.unused.iter().map(unused_flag_entry).collect(),
        notes: checked.notes().iter().map(note_entry).collect(),
    }
}

fn note_entry<'a>(note: &Note<'a>) -> NoteEntry<'a> {
    let (start, end) = (note.span.start, note.span.end);
    NoteEntry {
        kind: note.kind.name(),
        path: note.path,
        place: place_entry(Place::new((start.line, start.column), (end.line, end.column))),
        text: note.text,
    }
}

fn unused_flag_entry(flag: &UnusedFlag) -> UnusedFlagEntry {
    UnusedFlagEntry { flag: format!("--{}", flag.name), reason: flag.reason }
}

fn place_entry(place: Place) -> PlaceEntry {
    let Place { line, column, end_line, end_column, .. } = place;
    PlaceEntry { line, column, end_line, end_column }
}

fn edit_entry(edit: &Edit) -> EditEntry<'_> {
    EditEntry { place: place_entry(edit.place), text: &edit.text }
}

fn placed_entry(found: &FileFinding) -> PlacedEntry<'_> {
    PlacedEntry {
        finding: finding_entry(found.finding()),
        path: found.path(),
        place: found.place().map(place_entry),
        fix: found.fix().map(|fix| FixEntry { text: fix.text(), edits: fix.edits().iter().map(edit_entry).collect() }),
    }
}

fn log_entry(checked: &LogResult) -> LogEntry<'_> {
    LogEntry {
        name: &checked.name,
        delays: checked.log.entries.len(),
        skipped_hints: checked.log.skipped_hints,
        policy: checked.policy.map(|policy| policy.to_string()),
        findings: checked.findings.iter().map(finding_entry).collect(),
        too_few: checked.too_few().map(|few| few.to_string()),
    }
}

fn finding_entry(finding: &Finding) -> FindingEntry<'_> {
    let (rule, help) = (finding.rule(), finding.suggestion());
    FindingEntry {
        rule: rule.code(),
        name: rule.name(),
        severity: rule.severity().name(),
        title: rule.title(),
        facts: finding.facts(),
        rationale: rule.rationale(),
        help: HelpEntry {
            settings: help.settings(),
            policy: help.policy().map(ToString::to_string),
            advice: help.advice(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stagger_kit::assert_published_schema;

    #[test]
    fn the_published_schema_matches_the_output() {
        assert_published_schema::<Document<'_>>(env!("CARGO_MANIFEST_DIR"), "src/check/stagger.check-1.schema.json");
    }
}
