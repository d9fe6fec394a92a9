//! Findings for other programs: annotations of GitHub, JUnit and SARIF.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use stagger_lint::{FileFinding, Place, Rule, Severity};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::output::write::to_json;
use stagger_terminal::plot::svg::Element;

use super::result::{CheckResult, Reported, Subject};

/// Returns the findings as commands of GitHub Actions, which shows them at the lines of a pull request.
pub(crate) fn annotations(checked: &CheckResult) -> String {
    let subjects = checked.subjects();
    let lines = subjects.iter().flat_map(|subject| subject.findings.iter().map(move |found| (subject, found)));
    let unjudged = subjects.iter().filter_map(|subject| Some((subject, subject.unjudged.as_ref()?)));
    let unjudged =
        unjudged.map(|(subject, why)| format!("::warning title={}::{}\n", property(&subject.name), data(why)));
    lines.map(|(subject, found)| annotation(subject, found)).chain(unjudged).collect()
}

fn annotation(subject: &Subject<'_>, found: &Reported<'_>) -> String {
    let rule = found.finding.rule();
    let command = match rule.severity() {
        Severity::Warning => "warning",
        _ => "notice",
    };
    let mut properties = Vec::new();
    if let Some(file) = &subject.file {
        properties.push(format!("file={}", property(&path_shown(file))));
        if let Some(place) = found.place() {
            properties.push(format!("line={},endLine={}", place.line, place.end_line));
            // Of several lines, GitHub wants no columns.
            if place.line == place.end_line {
                properties.push(format!("col={},endColumn={}", place.column, place.end_column.max(place.column)));
            }
        }
    }
    properties.push(format!("title={}", property(&format!("{}: {}", rule.code(), rule.title()))));
    let text = if subject.file.is_some() { found.text() } else { format!("{}\n{}", subject.name, found.text()) };
    format!("::{command} {}::{}\n", properties.join(","), data(&text))
}

/// Escapes a message.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Returns the findings as JUnit XML: a suite for each file or policy, with a failed test for each finding, or one that
/// passed, or one that was skipped because there is too little to judge.
pub(crate) fn suites(checked: &CheckResult) -> String {
    let subjects = checked.subjects();
    let failures: usize = subjects.iter().map(|subject| subject.findings.len()).sum();
    let tests: usize = subjects.iter().map(|subject| subject.findings.len().max(1)).sum();
    let root = Element::new("testsuites").set("name", "stagger check");
    let skipped = subjects.iter().filter(|subject| subject.unjudged.is_some()).count();
    let root = root.set("tests", tests.to_string()).set("failures", failures.to_string()).set("errors", "0");
    let root = root.set("skipped", skipped.to_string());
    let suites: Vec<_> = subjects.iter().map(suite).collect();
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", root.children(&suites))
}

fn suite(subject: &Subject<'_>) -> Element {
    let count = subject.findings.len();
    let suite = Element::new("testsuite").set("name", &subject.name).set("tests", count.max(1).to_string());
    let suite = suite.set("failures", count.to_string()).set("errors", "0");
    if let Some(why) = &subject.unjudged {
        let case = Element::new("testcase").set("name", "too few to judge").set("classname", &subject.name);
        return suite.set("skipped", "1").child(&case.child(&Element::new("skipped").set("message", why)));
    }
    if count == 0 {
        return suite.child(&Element::new("testcase").set("name", "no findings").set("classname", &subject.name));
    }
    let cases: Vec<_> = subject
        .findings
        .iter()
        .map(|found| {
            let rule = found.finding.rule();
            let case = Element::new("testcase");
            let case = match found.place() {
                Some(place) => case
                    .set("name", format!("{} at {place}", rule.code()))
                    .set("classname", &subject.name)
                    .set("line", place.line.to_string()),
                None => case.set("name", rule.code()).set("classname", &subject.name),
            };
            let failure = Element::new("failure").set("type", rule.severity().name()).set("message", rule.title());
            case.child(&failure.text(&found.text()))
        })
        .collect();
    suite.children(&cases)
}

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
    let unjudged = subjects.iter().filter_map(|subject| Some((subject, subject.unjudged.as_ref()?)));
    let notifications: Vec<_> = unjudged
        .map(|(subject, why)| json!({ "level": "warning", "message": { "text": format!("{}: {why}", subject.name) } }))
        .collect();
    to_json(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "stagger",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| described(rule)).collect::<Vec<_>>(),
            } },
            "invocations": [{ "executionSuccessful": true, "toolExecutionNotifications": notifications }],
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
    let place = found.place();
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
    if let Some(fix) = found.placed.and_then(FileFinding::fix)
        && !fix.edits().is_empty()
    {
        let edits = fix.edits();
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
