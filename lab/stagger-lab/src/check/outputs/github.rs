use stagger_lint::{FileFinding, Severity};

use crate::check::result::{CheckResult, Reported, Subject};

/// Returns the findings as commands of GitHub Actions, which shows them at the lines of a pull request.
pub(crate) fn annotations(checked: &CheckResult) -> String {
    let subjects = checked.subjects();
    let lines = subjects.iter().flat_map(|subject| subject.findings.iter().map(move |found| (subject, found)));
    lines.map(|(subject, found)| annotation(subject, found)).collect()
}

fn annotation(subject: &Subject<'_>, found: &Reported<'_>) -> String {
    let rule = found.finding.rule();
    let command = match rule.severity() {
        Severity::Warning => "warning",
        _ => "notice",
    };
    let mut properties = Vec::new();
    if let Some(file) = &subject.file {
        properties.push(format!("file={}", property(file)));
        if let Some(place) = found.placed.and_then(FileFinding::place) {
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
