use crate::lint::file::{Edit, FileFinding, Fix, Place};
use crate::lint::{Finding, Rule};
use crate::system::file::system_file::SystemFile;

use super::rules::all;

/// A line of a table of a file: `nested = "stand-down"` in `edge.orders-database`.
pub(super) struct Change {
    /// The path of the table: `edge.orders-database`, `tier.database`.
    pub(super) table: String,
    pub(super) key: &'static str,
    /// The value, in TOML.
    pub(super) value: String,
}

impl SystemFile {
    /// Checks the file by the [rules](Rule::all) for systems. Returns the findings, ordered by code.
    ///
    /// ```
    /// use stagger_sim::system::SystemFile;
    ///
    /// let text = r#"
    /// users.rate = 90
    /// tier.database = { service = "5ms", backlog = 100 }
    /// edge = [{ from = "users", to = "database", policy = "zero max-attempts=3" }]
    /// "#;
    /// let found = SystemFile::parse(text)?.check();
    /// assert_eq!(found[0].finding().rule().name(), "unguarded-retries");
    /// assert_eq!(found[0].place().unwrap().to_string(), "4:53");
    ///
    /// let fix = found[0].fix().unwrap();
    /// assert!(fix.text().contains("budget = { tokens = 10, refund = 0.1 }"));
    /// assert!(SystemFile::parse(fix.applied_to(text).unwrap())?.check().is_empty());
    /// # Ok::<(), stagger_sim::system::SystemFileError>(())
    /// ```
    #[must_use]
    pub fn check(&self) -> Vec<FileFinding> {
        all(self)
    }

    /// Returns the file with a fix; `None` if it has no edits, or the file would not be valid.
    pub(super) fn with_fix(&self, fix: &Fix) -> Option<Self> {
        let text = fix.applied_to(&self.text)?;
        self.with_text(text).ok()
    }

    /// Creates a finding at a path; `help` goes on after the changes.
    pub(super) fn finding(
        &self,
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
        let fix = (!changes.is_empty()).then(|| self.fix(changes));
        Some(FileFinding { finding, path: path.to_owned(), place: self.place(path), fix })
    }

    /// Returns the fix that makes these changes. It has no edits if one of the tables is written as dotted keys.
    pub(super) fn fix(&self, changes: &[Change]) -> Fix {
        let edits: Option<Vec<_>> = changes.iter().map(|change| self.edit(change)).collect();
        let shown = changes.iter().map(|change| format!("{}\n{}", change.head(), change.line()));
        Fix { text: shown.collect::<Vec<_>>().join("\n"), edits: edits.unwrap_or_default() }
    }

    fn edit(&self, change: &Change) -> Option<Edit> {
        if let Some(bytes) = self.places.get(&format!("{}.{}", change.table, change.key)) {
            return Some(Edit { place: Place::of(&self.text, bytes), text: change.value.clone() });
        }
        let head = self.places.get(&change.table)?;
        let written = self.text.get(head.clone())?;
        let insert = |at: usize, text: String| Edit { place: Place::of(&self.text, &(at..at)), text };
        if let Some(rest) = written.strip_prefix('{') {
            let is_empty = rest.trim_start().starts_with('}');
            return Some(insert(head.start + 1, format!(" {}{}", change.line(), if is_empty { " " } else { "," })));
        }
        // Below the head, of which the rest is a comment at most.
        let rest = &self.text[head.end..];
        let edit = match rest.find('\n') {
            Some(end) => insert(head.end + end + 1, format!("{}\n", change.line())),
            None => insert(self.text.len(), format!("\n{}", change.line())),
        };
        written.starts_with('[').then_some(edit)
    }
}

impl Change {
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
