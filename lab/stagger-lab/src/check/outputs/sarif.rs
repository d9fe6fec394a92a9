use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use stagger_lint::{FileFinding, Place, Rule, Severity};

use crate::check::result::{CheckResult, Reported, Subject};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::to_json;

/// What stays as it is in the path of a URI.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Returns the findings as a log of SARIF 2.1.0, with the rules that they are from, and the fixes.
pub(crate) fn log(checked: &CheckResult) -> Result<String, CliError> {
    let subjects = checked.subjects();
    let mut rules: Vec<&Rule> =
        subjects.iter().flat_map(|subject| &subject.findings).map(|found| found.finding.rule()).collect();
    rules.sort_by_key(|rule| rule.code());
    rules.dedup();
    let results = subjects.iter().flat_map(|subject| subject.findings.iter().map(move |found| (subject, found)));
    to_json(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "stagger",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| described(rule)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results.map(|(subject, found)| result(subject, found, &rules)).collect::<Vec<_>>(),
        }],
    }))
}

const fn level(rule: &Rule) -> &'static str {
    match rule.severity() {
        Severity::Warning => "warning",
        _ => "note",
    }
}

fn described(rule: &Rule) -> Value {
    json!({
        "id": rule.code(),
        "name": rule.name(),
        "shortDescription": { "text": rule.title() },
        "fullDescription": { "text": format!("{}.", rule.rationale()) },
        "help": { "text": rule.details() },
        "defaultConfiguration": { "level": level(rule) },
    })
}

fn result(subject: &Subject<'_>, found: &Reported<'_>, rules: &[&Rule]) -> Value {
    let rule = found.finding.rule();
    let text = if subject.file.is_some() { found.text() } else { format!("{}: {}", subject.name, found.text()) };
    let mut result = json!({
        "ruleId": rule.code(),
        "ruleIndex": rules.iter().position(|known| *known == rule),
        "level": level(rule),
        "message": { "text": format!("{}\n{text}", rule.title()) },
    });
    let Some(file) = &subject.file else { return result };
    let artifact = json!({ "uri": utf8_percent_encode(file, PATH).to_string() });
    let place = found.placed.and_then(FileFinding::place);
    let physical = match place {
        Some(place) => json!({ "artifactLocation": artifact, "region": region(place) }),
        None => json!({ "artifactLocation": artifact }),
    };
    let logical = found.placed.map(|placed| json!([{ "fullyQualifiedName": placed.path() }]));
    result["locations"] = json!([{ "physicalLocation": physical }]);
    if let Some(logical) = logical {
        result["locations"][0]["logicalLocations"] = logical;
    }
    result["partialFingerprints"] = json!({ "stagger/v1": found.key(file).to_string() });
    let edits =
        found.placed.and_then(FileFinding::fix).map(|fix| (fix, fix.edits())).filter(|(_, edits)| !edits.is_empty());
    if let Some((fix, edits)) = edits {
        let replacements = edits
            .iter()
            .map(|edit| json!({ "deletedRegion": region(edit.place), "insertedContent": { "text": edit.text } }));
        let changes = json!([{ "artifactLocation": artifact, "replacements": replacements.collect::<Vec<_>>() }]);
        let text = if fix.text().is_empty() { "remove the line" } else { fix.text() };
        result["fixes"] = json!([{ "description": { "text": text }, "artifactChanges": changes }]);
    }
    result
}

fn region(place: Place) -> Value {
    let Place { line, column, end_line, end_column, .. } = place;
    json!({ "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column })
}
