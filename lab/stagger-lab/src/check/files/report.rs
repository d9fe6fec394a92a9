//! The findings of a file with its lines, for a terminal and for a page.

use std::collections::HashSet;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use stagger_lint::{FileFinding, Finding, Fix, Place};
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::plot::{Glyphs, RenderOptions, paragraph};

use super::notes::{self, NoteKind};
use super::read::{FileResult, UnusedFlag};
use crate::check::report::title;

/// How much is shown of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    Findings,
    /// Also fields that no policy expresses, and what is worth knowing.
    All,
}

/// The widest line of a file that is shown.
const MAX_WIDTH: u16 = 140;
/// A line with more bytes, such as a whole document, is not shown as a difference.
const LONG_LINE: usize = 400;

/// Formats the findings of a file, and what else was read. `explained` has the codes of the rules whose reason
/// has been printed.
pub(crate) fn section(
    checked: &FileResult,
    explained: &mut HashSet<&'static str>,
    detail: Detail,
    options: RenderOptions,
) -> String {
    let mut out = paragraph(&format!("{}: {}", checked.name, checked.kind), "  ", options);
    if checked.findings.is_empty() {
        out.push_str("no findings\n");
    }
    for group in groups(checked) {
        out.push_str(&finding(group[0], checked, explained, options));
        out.push_str(&others(&group[1..], options));
    }
    out.push_str(&unused(&checked.unused, options));
    // What has not been read may refute the findings.
    let kinds: &[NoteKind] = match detail {
        Detail::Findings => &[NoteKind::NotRead],
        Detail::All => &[NoteKind::NotRead, NoteKind::Unmapped, NoteKind::Fact],
    };
    out.push_str(&notes::section(&checked.notes(), kinds, options));
    out
}

/// Returns the findings, those that differ only in their place together.
fn groups(checked: &FileResult) -> Vec<Vec<&FileFinding>> {
    let mut groups: Vec<Vec<&FileFinding>> = Vec::new();
    for found in &checked.findings {
        match groups.iter_mut().find(|group| group[0].finding() == found.finding()) {
            Some(group) => group.push(found),
            None => groups.push(vec![found]),
        }
    }
    groups
}

/// A finding with its parts as text.
pub(crate) struct Shown<'a> {
    pub(crate) finding: &'a Finding,
    /// The line of its place, with the text underlined.
    pub(crate) source: String,
    /// The edits of its fix as a difference.
    pub(crate) change: String,
    /// The other places with the same finding, in a sentence.
    pub(crate) others: String,
}

/// Returns the findings of a file for a page.
pub(crate) fn shown(checked: &FileResult) -> Vec<Shown<'_>> {
    let options = RenderOptions { columns: MAX_WIDTH, glyphs: Glyphs::Unicode, color: false };
    let groups = groups(checked).into_iter().map(|group| {
        let first = group[0];
        let mut shown = Shown {
            finding: first.finding(),
            source: String::new(),
            change: String::new(),
            others: others(&group[1..], options),
        };
        if let Some(place) = first.place() {
            shown.source = source(checked, place, options);
        }
        if let Some(fix) = first.fix() {
            shown.change = change(fix, checked.text(), options);
        }
        shown
    });
    groups.collect()
}

/// Says which context flags change nothing in this file.
fn unused(flags: &[UnusedFlag], options: RenderOptions) -> String {
    let mut out = String::new();
    for same in flags.chunk_by(|one, other| one.reason == other.reason) {
        let names: Vec<_> = same.iter().map(|flag| format!("--{}", flag.name)).collect();
        let verb = if names.len() == 1 { "has" } else { "have" };
        let text = format!("note: {} {verb} no effect on this file: {}", names.join(", "), same[0].reason);
        out.push_str(&paragraph(&text, "      ", options));
    }
    out
}

/// Names the other places of a finding.
fn others(group: &[&FileFinding], options: RenderOptions) -> String {
    const SHOWN: usize = 10;
    let places: Vec<_> = group.iter().filter_map(|found| found.place()).map(|place| place.to_string()).collect();
    if places.is_empty() {
        return String::new();
    }
    let more = places.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more places") } else { String::new() };
    paragraph(&format!("  the same at {}{more}", places[..places.len().min(SHOWN)].join(", ")), "    ", options)
}

/// Formats a finding like a compiler diagnostic: title, place, figures, reason, fix.
fn finding(
    found: &FileFinding,
    checked: &FileResult,
    explained: &mut HashSet<&'static str>,
    options: RenderOptions,
) -> String {
    let finding = found.finding();
    let rule = finding.rule();
    let mut out = title(rule, options);
    if let Some(place) = found.place() {
        out.push_str(&source(checked, place, options));
    }
    for fact in finding.facts() {
        out.push_str(&paragraph(&format!("  {fact}"), "    ", options));
    }
    if explained.insert(rule.code()) {
        out.push_str(&paragraph(&format!("  why: {}", rule.rationale()), "    ", options));
    }
    out.push_str(&paragraph(&format!("  help: {}", finding.suggestion()), "    ", options));
    if let Some(fix) = found.fix() {
        out.push_str(&change(fix, checked.text(), options));
    }
    out
}

/// Formats the line of a place with its text underlined.
fn source(checked: &FileResult, place: Place, options: RenderOptions) -> String {
    let (text, first) = around(checked.text(), place.line, place.line);
    // Of a part with several lines, the first.
    let end = if place.end_line == place.line { place.end_column } else { usize::MAX };
    // Of a part that fills the screen, what it begins with.
    let end = if text.len() > LONG_LINE { end.min(place.column + usize::from(MAX_WIDTH) / 2) } else { end };
    let bytes = Place::new((1, place.column), (1, end)).bytes(text);
    let snippet = Snippet::source(text).line_start(first).path(path_shown(&checked.name));
    render(Group::with_level(Level::WARNING).element(snippet.annotation(AnnotationKind::Primary.span(bytes))), options)
}

/// Formats the edits of a fix as a difference, or the lines that people have to write.
fn change(fix: &Fix, text: &str, options: RenderOptions) -> String {
    let words = || fix.text().lines().map(|line| format!("    {line}\n")).collect();
    let (Some(first), Some(last)) = (
        fix.edits().iter().map(|edit| edit.place.line).min(),
        fix.edits().iter().map(|edit| edit.place.end_line).max(),
    ) else {
        return words();
    };
    let (text, first) = around(text, first.saturating_sub(1).max(1), last);
    if text.lines().any(|line| line.len() > LONG_LINE) {
        return words();
    }
    let patches = fix.edits().iter().map(|edit| {
        let Place { line, column, end_line, end_column, .. } = edit.place;
        let place = Place::new((line + 1 - first, column), (end_line + 1 - first, end_column));
        Patch::new(place.bytes(text), edit.text.clone())
    });
    let snippet = Snippet::source(text).line_start(first).patches(patches);
    render(Group::with_level(Level::HELP).element(snippet), options)
}

/// Returns the lines from one to another, and the number of the first: the renderer passes over all that it is given.
fn around(text: &str, first: usize, last: usize) -> (&str, usize) {
    let start: usize = text.split_inclusive('\n').take(first - 1).map(str::len).sum();
    let length: usize = text[start..].split_inclusive('\n').take(last + 1 - first).map(str::len).sum();
    (&text[start..start + length], first)
}

fn render(group: Group<'_>, options: RenderOptions) -> String {
    let renderer = if options.color { Renderer::styled() } else { Renderer::plain() };
    let width = usize::from(options.columns.min(MAX_WIDTH));
    let text = renderer
        .decor_style(options.glyphs.pick(DecorStyle::Unicode, DecorStyle::Ascii))
        .term_width(width)
        .render(&[group]);
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
