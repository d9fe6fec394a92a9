//! The rules themselves: `--rules` and `--explain`.

use serde::Serialize;
use stagger_lint::Rule;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::to_json;
use stagger_terminal::plot::{Column, RenderOptions, paragraph, table};

const COLUMNS: [Column<'_>; 4] = [
    Column::left("code"),
    Column::left("finding"),
    Column::left("severity").optional(),
    Column::left("name").optional(),
];

/// Returns the list of rules as text for a terminal.
pub(super) fn text(options: RenderOptions) -> String {
    let rows = Rule::all().map(|rule| vec![rule.code(), rule.title(), rule.severity().name(), rule.name()]);
    let mut out = table(&COLUMNS, rows, options);
    out.push_str(&paragraph(
        "`stagger check --explain CODE` explains when a rule applies and how to fix its findings",
        "",
        options,
    ));
    options.glyphs.transliterate(&out).into_owned()
}

/// Returns the full explanation of a rule.
pub(super) fn explanation(rule: &Rule, options: RenderOptions) -> String {
    let head = format!("{} {}: {} ({})", rule.code(), rule.name(), rule.title(), rule.severity().name());
    let out = [head, format!("Why: {}.", rule.rationale()), rule.details().to_owned()]
        .map(|text| paragraph(&text, "", options));
    options.glyphs.transliterate(&out.join("\n")).into_owned()
}

#[derive(Debug, Serialize)]
struct Entry {
    rule: &'static str,
    name: &'static str,
    severity: &'static str,
    title: &'static str,
    rationale: &'static str,
    details: &'static str,
}

#[derive(Debug, Serialize)]
struct List {
    schema: &'static str,
    rules: Vec<Entry>,
}

/// Returns the list of rules as JSON (schema `stagger.rules/1`).
pub(super) fn json() -> Result<String, CliError> {
    let entry = |rule: &Rule| Entry {
        rule: rule.code(),
        name: rule.name(),
        severity: rule.severity().name(),
        title: rule.title(),
        rationale: rule.rationale(),
        details: rule.details(),
    };
    to_json(&List { schema: "stagger.rules/1", rules: Rule::all().map(entry).collect() })
}
