use core::iter::successors;

use stagger_sim::system::SystemFile;

use crate::file::{Edit, FileFinding, Fix, Place};
use crate::{Finding, Rule};

/// A line of a table of a file: `nested = "stand-down"` in `edge.orders-database`.
pub(super) struct Change {
    /// The path of the table: `edge.orders-database`, `tier.database`.
    pub(super) table: String,
    pub(super) key: &'static str,
    /// The value, in TOML.
    pub(super) value: String,
}

/// Returns the file with a fix; `None` if it has no edits, or the file would not be valid.
pub(super) fn with_fix(file: &SystemFile, fix: &Fix) -> Option<SystemFile> {
    let text = fix.applied_to(file.text())?;
    file.with_text(text).ok()
}

/// Creates a finding at a path; `help` goes on after the changes.
pub(super) fn finding(
    file: &SystemFile,
    rule: &'static Rule,
    path: &str,
    facts: Vec<String>,
    changes: &[Change],
    help: &str,
) -> Option<FileFinding> {
    let lines = changes.iter().map(|change| format!("{} in {}", change.line(), change.table)).collect::<Vec<_>>();
    let advice = [lines.join(", and "), help.to_owned()];
    let advice = advice.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join("; ");
    let finding = Finding::with_advice(rule, facts, &advice)?;
    let fix = if changes.is_empty() { None } else { Some(fix(file, changes)) };
    Some(FileFinding { finding, path: path.to_owned(), place: place(file, path), fix })
}

/// Returns the place of the value at a path, or of the table that would have it if the value is a default. `None` if the
/// file has neither.
fn place(file: &SystemFile, path: &str) -> Option<Place> {
    let mut tables = successors(Some(path), |path| path.rsplit_once('.').map(|(table, _)| table));
    let bytes = tables.find_map(|path| file.span(path))?;
    Some(Place::of(file.text(), &bytes))
}

/// Returns the fix that makes these changes. It has no edits if one of the tables is written as dotted keys.
pub(super) fn fix(file: &SystemFile, changes: &[Change]) -> Fix {
    let edits: Option<Vec<_>> = changes.iter().map(|change| change.edit(file)).collect();
    let shown = changes.iter().map(|change| format!("{}\n{}", change.head(), change.line()));
    Fix { text: shown.collect::<Vec<_>>().join("\n"), edits: edits.unwrap_or_default() }
}

impl Change {
    fn edit(&self, file: &SystemFile) -> Option<Edit> {
        let all = file.text();
        if let Some(bytes) = file.span(&format!("{}.{}", self.table, self.key)) {
            return Some(Edit { place: Place::of(all, &bytes), text: self.value.clone() });
        }
        let head = file.span(&self.table)?;
        let written = all.get(head.clone())?;
        let insert = |at: usize, text: String| Edit { place: Place::of(all, &(at..at)), text };
        if let Some(rest) = written.strip_prefix('{') {
            let is_empty = rest.trim_start().starts_with('}');
            return Some(insert(head.start + 1, format!(" {}{}", self.line(), if is_empty { " " } else { "," })));
        }
        // A table written as dotted keys has no head below which a line could stand.
        if !written.starts_with('[') {
            return None;
        }
        // Below the head, of which the rest is a comment at most.
        Some(match all[head.end..].find('\n') {
            Some(end) => insert(head.end + end + 1, format!("{}\n", self.line())),
            None => insert(all.len(), format!("\n{}", self.line())),
        })
    }

    fn line(&self) -> String {
        format!("{} = {}", self.key, self.value)
    }

    /// Returns the head of the table, with the name of an edge.
    fn head(&self) -> String {
        match self.table.strip_prefix("edge.") {
            Some(name) => format!("[[edge]] # {name}"),
            None => format!("[{}]", self.table),
        }
    }
}
