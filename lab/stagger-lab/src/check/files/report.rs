//! The findings of a file with its lines.

use std::collections::HashSet;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use stagger_lint::{FileFinding, Fix, Place};
use stagger_report::report::{Finding, Part};
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::plot::RenderOptions;

use super::notes::{self, NoteKind};
use super::read::{FileResult, UnusedFlag};
use crate::check::report::shown;

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

/// Returns the findings of a file, and what else was read. `explained` has the codes of the rules whose reason has been
/// told.
pub(crate) fn parts(
    checked: &FileResult,
    explained: &mut HashSet<&'static str>,
    detail: Detail,
    options: RenderOptions,
) -> Vec<Part> {
    let mut parts =
        vec![Part::Heading(checked.name.clone()), Part::Text(format!("{}: {}", checked.name, checked.kind))];
    if checked.findings.is_empty() {
        parts.push(Part::Text("no findings".to_owned()));
    }
    for group in groups(checked) {
        parts.push(Part::Finding(finding(&group, checked, explained, options)));
    }
    parts.extend(unused(&checked.unused));
    // What has not been read may refute the findings.
    let kinds: &[NoteKind] = match detail {
        Detail::Findings => &[NoteKind::NotRead],
        Detail::All => &[NoteKind::NotRead, NoteKind::Unmapped, NoteKind::Fact],
    };
    parts.extend(notes::parts(&checked.notes(), kinds));
    parts
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

/// Says which context flags change nothing in this file.
fn unused(flags: &[UnusedFlag]) -> Vec<Part> {
    let same = flags.chunk_by(|one, other| one.reason == other.reason);
    let note = |same: &[UnusedFlag]| {
        let names: Vec<_> = same.iter().map(|flag| format!("--{}", flag.name)).collect();
        let verb = if names.len() == 1 { "has" } else { "have" };
        Part::Text(format!("note: {} {verb} no effect on this file: {}", names.join(", "), same[0].reason))
    };
    same.map(note).collect()
}

/// Names the other places of a finding.
fn others(group: &[&FileFinding]) -> String {
    const SHOWN: usize = 10;
    let places: Vec<_> = group.iter().filter_map(|found| found.place()).map(|place| place.to_string()).collect();
    if places.is_empty() {
        return String::new();
    }
    let more = places.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more places") } else { String::new() };
    format!("the same at {}{more}", places[..places.len().min(SHOWN)].join(", "))
}

/// Returns the findings of a group, with the place and the fix of the first.
fn finding(
    group: &[&FileFinding],
    checked: &FileResult,
    explained: &mut HashSet<&'static str>,
    options: RenderOptions,
) -> Finding {
    let (found, rest) = (group[0], &group[1..]);
    let explains = explained.insert(found.finding().rule().code());
    let mut finding = shown(found.finding(), explains);
    if let Some(place) = found.place() {
        finding.source = source(checked, place, options);
    }
    if let Some(fix) = found.fix() {
        finding.change = change(fix, checked.text(), options);
    }
    finding.others = others(rest);
    finding
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
