use std::collections::HashSet;

use stagger_config::{Entry, EntryKind, Format, ReadError, Remark, RemarkKind, read};

use super::calls::{Calls, Checked};
use super::circumstances::{UnusedFact, unused};
use super::draft::Draft;
use super::edits::Editor;
use super::processes;
use super::remedy;
use crate::file::Fix;
use crate::rules::config::{BINDS_NOTHING, FIELD_WITHOUT_EFFECT, REFUSED_VALUE};
use crate::{DeploymentContext, FileFinding};

/// A configuration of another system, with what has been read from it.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    name: String,
    pub(super) text: String,
    format: Option<Format>,
    pub(super) entries: Vec<Entry>,
}

/// The most text that is read again to see whether fixes help, in bytes.
const READ_AGAIN: usize = 4 * 1_024 * 1_024;

impl ConfigFile {
    /// Reads a configuration. The format is found by the content if it is not given.
    ///
    /// # Errors
    /// [`ReadError`] with the place, if it is no configuration that is known, or not valid.
    pub fn read(name: impl Into<String>, text: impl Into<String>, format: Option<Format>) -> Result<Self, ReadError> {
        let text: String = text.into();
        // The reader counts columns without the mark of UTF-8.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
        let entries = read(&text, format)?;
        Ok(Self { name: name.into(), text, format, entries })
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns what the file says about retries, in its order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Checks the file by the [rules](crate::Rule::all) for configurations, and by those for policies whose findings
    /// can be mended in such a file. Returns the findings in the order of the file.
    ///
    /// The edits of a fix have been tried: the file with them has no such finding there, and no new one. If a file is
    /// so long that trying would take seconds, and where no edit is known, a fix has only its text.
    #[must_use]
    pub fn check(&self) -> Vec<FileFinding> {
        self.check_in(&DeploymentContext::default())
    }

    /// Checks the file as [`check`](Self::check) does, in a deployment: also by the rules for policies that find
    /// something because of what is known there, such as too many attempts for calls that a person waits for. Where the
    /// file, or a default of its system, says the same as the deployment, such as the time limit of an attempt, the
    /// file counts; of two limits for a whole call, the shorter one.
    ///
    /// If load and capacity are known, outages of the first 64 policies that differ are simulated.
    ///
    /// ```
    /// use stagger_lint::config::ConfigFile;
    /// use stagger_lint::{DeploymentContext, Purpose};
    ///
    /// let text = r#"{"methodConfig": [{"name": [{}], "timeout": "20s", "retryPolicy": {"maxAttempts": 5,
    ///     "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
    ///     "retryableStatusCodes": ["UNAVAILABLE"]}}]}"#;
    /// let file = ConfigFile::read("service_config.json", text, None)?;
    /// let found = file.check_in(&DeploymentContext::default().purpose(Purpose::Serverless));
    /// assert!(found.iter().any(|found| found.finding().rule().name() == "too-many-attempts"));
    /// assert!(file.check().iter().all(|found| found.finding().rule().name() != "too-many-attempts"));
    /// # Ok::<(), stagger_config::ReadError>(())
    /// ```
    #[must_use]
    pub fn check_in(&self, context: &DeploymentContext) -> Vec<FileFinding> {
        let checked = Checked::default();
        let drafts = self.drafts(context, &checked);
        let before: HashSet<_> = drafts.iter().map(Draft::key).collect();
        // Returns whether the finding goes with a fix, and no other comes.
        let helps = |fix: &Fix, key: &str| {
            let fixed = fix.applied_to(&self.text).map(|fixed| Self::read("", fixed, self.format));
            let Some(Ok(fixed)) = fixed else { return false };
            let after = fixed.drafts(context, &checked);
            after.iter().all(|draft| draft.key() != key && before.contains(draft.key()))
        };
        let mut left = READ_AGAIN;
        let mut findings = Vec::new();
        for draft in &drafts {
            // With the load, it is known what the lack of a limit means.
            if draft.rule.code() == "C012" && before.contains(&*format!("S016 {}", draft.path)) {
                continue;
            }
            let Some(mut found) = draft.finding() else { continue };
            if let Some(fix) = &mut found.fix {
                if !fix.edits.is_empty() {
                    let is_tried = left >= self.text.len();
                    left = left.saturating_sub(self.text.len());
                    if !is_tried || !helps(fix, draft.key()) {
                        fix.edits.clear();
                    }
                }
            }
            findings.push(found);
        }
        findings
    }

    /// Returns which facts about the deployment change nothing in this file, and why: each is used by no entry of it.
    #[must_use]
    pub fn unused(&self, context: &DeploymentContext) -> Vec<UnusedFact> {
        unused(&self.entries, context)
    }

    /// Returns what the rules find, before fixes are tried.
    fn drafts(&self, context: &DeploymentContext, checked: &Checked) -> Vec<Draft> {
        let editor = Editor::new(&self.text);
        let mut calls = Calls::new(&editor, context, checked);
        let mut drafts: Vec<Draft> = Vec::new();
        for entry in &self.entries {
            drafts.extend(remarks(entry, &editor));
            if binds_nothing(entry) {
                continue;
            }
            match entry.kind {
                EntryKind::Call | EntryKind::Fetch | EntryKind::Step => drafts.extend(calls.check(entry)),
                EntryKind::Limit => drafts.extend(calls.limit(entry)),
                EntryKind::Restart => {
                    drafts.extend(processes::restart(entry, &editor));
                    // Without a deployment, the rules for processes say what is to be said.
                    if *context != DeploymentContext::default() {
                        drafts.extend(calls.policy(entry));
                    }
                }
                EntryKind::Probe => drafts.extend(processes::probe(entry, &editor)),
                _ => {}
            }
        }
        drafts.sort_by_key(|draft| (draft.span, draft.rule.code()));
        drafts
    }
}

/// Returns whether the reader says that nothing of an entry applies.
fn binds_nothing(entry: &Entry) -> bool {
    entry.remarks.iter().any(|remark| remark.kind == RemarkKind::NoEffect && is_about_all_of(entry, remark))
}

fn is_about_all_of(entry: &Entry, remark: &Remark) -> bool {
    remark.path == entry.path && remark.span == entry.span
}

/// Returns the findings of the reader.
fn remarks(entry: &Entry, editor: &Editor<'_>) -> Vec<Draft> {
    let drafts = entry.remarks.iter().filter_map(|remark| {
        let is_whole = is_about_all_of(entry, remark);
        let rule = match remark.kind {
            RemarkKind::NoEffect if is_whole => &BINDS_NOTHING,
            RemarkKind::NoEffect => &FIELD_WITHOUT_EFFECT,
            RemarkKind::Invalid => &REFUSED_VALUE,
            RemarkKind::Hazard => remedy::hazard_rule(entry, remark),
            _ => return None,
        };
        let field = editor.key(remark.span);
        let draft = Draft::new(rule, &remark.path, remark.span).fact(format!("{field}: {}", remark.text));
        Some(match remark.kind {
            RemarkKind::NoEffect if !is_whole => draft.remedy(remedy::ineffective(remark, editor)),
            RemarkKind::Hazard => draft.remedy(remedy::hazard(entry, remark, editor)),
            RemarkKind::NoEffect => draft.advise("name it where it is to apply, or remove it"),
            _ => draft.advise("write a value that the system accepts"),
        })
    });
    drafts.collect()
}
