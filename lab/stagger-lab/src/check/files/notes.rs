//! What a file says that no rule judges: settings without an equivalent, references, and remarks.

use std::collections::{HashMap, HashSet};

use stagger_config::{Remark, RemarkKind, Span};
use stagger_lint::config::ConfigFile;
use stagger_report::report::Part;

/// Places of equal notes that are shown.
const SHOWN: usize = 10;

/// What a reader has noticed in a file, beside the findings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note<'a> {
    pub(crate) kind: NoteKind,
    /// The path of the field within the file.
    pub(crate) path: &'a str,
    pub(crate) span: Span,
    pub(crate) text: &'a str,
}

/// What a note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoteKind {
    /// The field has an effect that a policy cannot express.
    Unmapped,
    /// What the file refers to has not been read.
    NotRead,
    /// It is worth knowing.
    Fact,
}

impl NoteKind {
    /// Returns the word of JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unmapped => "unmapped",
            Self::NotRead => "not-read",
            Self::Fact => "fact",
        }
    }

    /// Returns the heading of a report.
    const fn title(self) -> &'static str {
        match self {
            Self::Unmapped => "cannot be said as a policy:",
            Self::NotRead => "not read:",
            Self::Fact => "worth knowing:",
        }
    }
}

/// Returns the notes about a file, in its order. Several parts of a file may share a field, which is noted once.
pub(super) fn notes(config: &ConfigFile) -> Vec<Note<'_>> {
    let mut seen = HashSet::new();
    let remarks = config.entries().iter().flat_map(|entry| &entry.remarks);
    let found = remarks.filter_map(|remark: &Remark| {
        let kind = match remark.kind {
            RemarkKind::Unmapped => NoteKind::Unmapped,
            RemarkKind::NotRead => NoteKind::NotRead,
            RemarkKind::Note => NoteKind::Fact,
            // The others are findings.
            _ => return None,
        };
        let note = Note { kind, path: &remark.path, span: remark.span, text: &remark.text };
        if seen.insert((remark.span, &remark.path, &remark.text)) { Some(note) } else { None }
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|note| note.span);
    found
}

/// Returns the notes of some kinds about a file: one for each text and field, with all its places.
pub(super) fn parts(notes: &[Note<'_>], kinds: &[NoteKind]) -> Vec<Part> {
    let list = |kind: &NoteKind| {
        let lines = lines(notes.iter().filter(|note| note.kind == *kind));
        if lines.is_empty() { None } else { Some(Part::List(kind.title(), lines)) }
    };
    kinds.iter().filter_map(list).collect()
}

fn lines<'a>(notes: impl Iterator<Item = &'a Note<'a>>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<Span>)> = Vec::new();
    let mut positions = HashMap::new();
    for note in notes {
        let text = format!("{}: {}", field(note.path), note.text);
        let at = *positions.entry(text.clone()).or_insert(groups.len());
        if at == groups.len() {
            groups.push((text, Vec::new()));
        }
        groups[at].1.push(note.span);
    }
    let line = |(text, spans): &(String, Vec<Span>)| {
        let places = spans.iter().take(SHOWN).map(|span| format!("{}:{}", span.start.line, span.start.column));
        let places = places.collect::<Vec<_>>().join(", ");
        let more = spans.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more places") } else { String::new() };
        format!("{places}{more}: {text}")
    };
    groups.iter().map(line).collect()
}

/// Returns the last part of a path, which is the name of the field; a path with spaces is kept.
fn field(path: &str) -> &str {
    if path.contains([' ', '/']) { path } else { path.rsplit('.').next().unwrap_or(path) }
}
