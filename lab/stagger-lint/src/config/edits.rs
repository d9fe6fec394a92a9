use core::cell::OnceCell;
use core::ops::Range;

use stagger_config::Span;

use super::draft::place;
use crate::file::{Edit, Place};

/// Writes changes into a text of a syntax that it tells by what is around them.
pub(super) struct Editor<'a> {
    text: &'a str,
    lines: Vec<&'a str>,
    /// The first byte of each line.
    starts: Vec<usize>,
    is_json: bool,
    /// How many limits of clusters there are, once it has been asked for: a long file has many findings.
    limits: OnceCell<usize>,
}

/// A field and its value.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) key: String,
    pub(super) value: String,
    /// Whether the value is a text, which JSON quotes.
    is_text: bool,
}

impl Line {
    pub(super) fn text(key: &str, value: impl Into<String>) -> Self {
        Self { key: key.to_owned(), value: value.into(), is_text: true }
    }

    pub(super) fn plain(key: &str, value: impl Into<String>) -> Self {
        Self { key: key.to_owned(), value: value.into(), is_text: false }
    }
}

impl<'a> Editor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let is_json = text.trim_start_matches('\u{feff}').trim_start().starts_with('{');
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        let starts = core::iter::once(0).chain(ends).collect();
        Self { text, lines: text.lines().collect(), starts, is_json, limits: OnceCell::new() }
    }

    /// Returns the bytes of a part, without passing over all that is before it.
    fn bytes(&self, span: Span) -> Range<usize> {
        let (start, end) = (self.byte(span.start.line, span.start.column), self.byte(span.end.line, span.end.column));
        start.min(self.text.len())..end.clamp(start, self.text.len())
    }

    fn byte(&self, line: usize, column: usize) -> usize {
        let text = self.line(line);
        // Lines count from 1; there is no line 0.
        let start = match line.checked_sub(1) {
            Some(line) if line < self.starts.len() => self.starts[line],
            _ => self.text.len(),
        };
        start + text.char_indices().nth(column.saturating_sub(1)).map_or(text.len(), |(at, _)| at)
    }

    /// Returns a line, which count from 1; an empty one behind the end.
    fn line(&self, number: usize) -> &'a str {
        self.lines.get(number.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Returns the name of a field, as it is written.
    pub(super) fn key(&self, span: Span) -> &'a str {
        let written = self.text[self.bytes(span)].lines().next().unwrap_or_default();
        let key = match written.split_once([':', '=']).or(written.split_once(char::is_whitespace)) {
            Some((key, _)) => key,
            None => written,
        };
        key.trim().trim_matches('"')
    }

    /// Returns a field with its name spelled as that of another: with hyphens, or as it is.
    pub(super) fn spelled_like(&self, other: Span, line: &Line) -> Line {
        let mut spelled = line.clone();
        if self.key(other).contains('-') {
            spelled.key = String::new();
            for character in line.key.chars() {
                if character.is_ascii_uppercase() {
                    spelled.key.push('-');
                }
                spelled.key.push(character.to_ascii_lowercase());
            }
        }
        spelled
    }

    /// Writes a field as JSON or YAML has it.
    pub(super) fn written(&self, line: &Line) -> String {
        match (self.is_json, line.is_text) {
            (true, true) => format!("\"{}\": \"{}\"", line.key, line.value),
            (true, false) => format!("\"{}\": {}", line.key, line.value),
            (false, true) => format!("{}: {}", line.key, line.value),
            (false, false) => format!("{}: {}", line.key, line.value.replace('"', "")),
        }
    }

    /// Replaces the value of a field, whose key and value are on one line.
    pub(super) fn replace(&self, span: Span, line: &Line) -> Vec<Edit> {
        let written = &self.text[self.bytes(span)];
        let end_of_key = written.find([':', '=']).or(written.trim_end().rfind(char::is_whitespace));
        let Some(at) = end_of_key else { return Vec::new() };
        let rest = written[at + 1..].trim_start();
        let start = written.len() - rest.len();
        let quote = match rest.chars().next() {
            Some('\'') => "'",
            Some('"') => "\"",
            _ if line.is_text && self.is_json => "\"",
            _ => "",
        };
        let text = format!("{}{quote}{}{quote}", &written[..start], line.value);
        vec![Edit { place: place(span), text }]
    }

    /// Replaces a directive.
    pub(super) fn replace_text(&self, span: Span, text: &str) -> Vec<Edit> {
        vec![Edit { place: place(span), text: text.to_owned() }]
    }

    /// Inserts a field before another of the same mapping.
    pub(super) fn before(&self, span: Span, line: &Line) -> Vec<Edit> {
        self.insert(span.start.line, span.start.column, &self.written(line))
    }

    /// Inserts a line before another of a file whose lines are directives.
    pub(super) fn line_before(&self, span: Span, text: &str) -> Vec<Edit> {
        let indent = self.indent(span.start.line);
        vec![self.at(span.start.line, 1, format!("{indent}{text}\n"))]
    }

    /// Inserts lines behind another, indented as the line that follows it if that is indented more.
    pub(super) fn line_after(&self, line: usize, text: &str) -> Vec<Edit> {
        let next_is_deeper =
            !self.line(line + 1).trim().is_empty() && self.indent(line + 1).len() > self.indent(line).len();
        let indent = if next_is_deeper { self.indent(line + 1) } else { self.indent(line) };
        let text = text.replace('\n', &format!("\n{indent}"));
        if line < self.lines.len() {
            return vec![self.at(line + 1, 1, format!("{indent}{text}\n"))];
        }
        let end = self.line(line).chars().count();
        vec![self.at(line, end + 1, format!("\n{indent}{text}"))]
    }

    /// Inserts a field as the first of the whole file.
    pub(super) fn top(&self, line: &Line) -> Vec<Edit> {
        if !self.is_json {
            return vec![self.at_the_top(&format!("{}\n", self.written(line)))];
        }
        let brace = self.text.find('{').unwrap_or(0);
        self.below_byte(brace, 1 + self.text[..brace].matches('\n').count(), line)
    }

    /// Inserts a field as the first of a mapping whose key is given.
    pub(super) fn below(&self, key: Span, line: &Line) -> Vec<Edit> {
        self.below_byte(self.bytes(key).start, key.start.line, line)
    }

    fn below_byte(&self, start: usize, number: usize, line: &Line) -> Vec<Edit> {
        let rest = &self.text[start..];
        let same_line = rest.lines().next().unwrap_or_default();
        if let Some(brace) = same_line.find('{') {
            let line_start = self.starts.get(number.saturating_sub(1)).copied().unwrap_or(start);
            let column = self.text[line_start..=start + brace].chars().count() + 1;
            let after = &same_line[brace + 1..];
            if !after.trim().is_empty() {
                return vec![self.at(number, column, format!("{}, ", self.written(line)))];
            }
        }
        for below in number + 1..=self.lines.len() {
            let text = self.line(below).trim();
            let is_comment = text.starts_with('#') || text.starts_with("//");
            if !text.is_empty() && !is_comment {
                return self.insert(below, self.indent(below).chars().count() + 1, &self.written(line));
            }
        }
        Vec::new()
    }

    /// Inserts a field behind the brace that begins a part.
    pub(super) fn inside(&self, span: Span, line: &Line) -> Vec<Edit> {
        let bytes = self.bytes(span);
        if self.text[bytes.clone()].starts_with('{') { self.below(span, line) } else { self.before(span, line) }
    }

    /// Removes a field that has a line of its own.
    pub(super) fn remove(&self, span: Span) -> Vec<Edit> {
        let bytes = self.bytes(span);
        let line = self.line(span.start.line);
        if span.start.line != span.end.line || line.trim() != &self.text[bytes] || self.is_json {
            return Vec::new();
        }
        let place = Place::new((span.start.line, 1), (span.start.line + 1, 1));
        vec![Edit { place, text: String::new() }]
    }

    /// Removes a word from the list with commas that a field has, if others are left. Returns the field as it is then.
    pub(super) fn without_word(&self, span: Span, word: &str) -> Option<(String, Vec<Edit>)> {
        let written = &self.text[place(span).bytes(self.text)];
        let start = written.find(':')? + 1;
        let list = written[start..].trim().trim_matches('"');
        let words: Vec<_> = list.split(',').filter(|other| other.trim() != word).collect();
        if words.is_empty() || words.len() == list.split(',').count() {
            return None;
        }
        let text = written.replacen(list, &words.join(","), 1);
        Some((text.clone(), vec![Edit { place: place(span), text }]))
    }

    /// Removes a part of a line. Returns what is left of it, without its indentation.
    pub(super) fn without(&self, span: Span, part: &str) -> (String, Vec<Edit>) {
        let text = self.text[place(span).bytes(self.text)].replacen(part, "", 1);
        (text.trim().to_owned(), vec![Edit { place: place(span), text }])
    }

    /// Replaces the value of the first of these fields behind a place, within a few lines.
    pub(super) fn replace_near(&self, from: Span, keys: &[&str], value: &str) -> Vec<Edit> {
        const NEAR: usize = 30;
        let near = self.lines.iter().enumerate().skip(from.start.line - 1).take(NEAR);
        for (at, line) in near {
            for key in keys {
                let Some(column) = line.find(key) else { continue };
                let rest = &line[column + key.len()..];
                let Some(rest) = rest.trim_start_matches('"').strip_prefix(':') else { continue };
                let written = rest.trim_start();
                let written = written.split(" #").next().unwrap_or_default().trim_end().trim_end_matches([',', '}']);
                if written.is_empty() {
                    return Vec::new();
                }
                let start = line.len() - rest.trim_start().len();
                let column = line[..start].chars().count() + 1;
                let quote = if written.starts_with('"') { "\"" } else { "" };
                let place = Place::new((at + 1, column), (at + 1, column + written.chars().count()));
                return vec![Edit { place, text: format!("{quote}{value}{quote}") }];
            }
        }
        Vec::new()
    }

    /// Inserts a field beside the last one of this name that begins above a part of it, or with it.
    pub(super) fn beside_above(&self, span: Span, key: &str, line: &Line) -> Vec<Edit> {
        let (quoted, plain) = (format!("\"{key}\""), format!("{key}:"));
        for number in (1..=span.start.line.min(self.lines.len())).rev() {
            let text = self.line(number);
            if let Some(start) = text.find(&quoted).or(text.find(&plain)) {
                return self.insert(number, text[..start].chars().count() + 1, &self.written(line));
            }
        }
        Vec::new()
    }

    /// Returns how many limits of the retries at once a file of Envoy has.
    pub(super) fn count_limits(&self) -> usize {
        let count = || self.text.matches("max_retries").count() + self.text.matches("maxRetries").count();
        *self.limits.get_or_init(count)
    }

    /// Returns the number of the first line with this beginning.
    pub(super) fn find_line(&self, start: &str) -> Option<usize> {
        self.find_lines(start).next()
    }

    /// Returns the numbers of the lines with this beginning.
    pub(super) fn find_lines(&self, start: &str) -> impl Iterator<Item = usize> {
        let lines = self.lines.iter().enumerate();
        lines.filter(move |(_, line)| line.trim_start().starts_with(start)).map(|(at, _)| at + 1)
    }

    /// Replaces a whole line.
    pub(super) fn replace_line(&self, line: usize, text: &str) -> Vec<Edit> {
        let end = self.line(line).chars().count();
        vec![Edit { place: Place::new((line, 1), (line, end + 1)), text: text.to_owned() }]
    }

    /// Inserts before a field: on a line of its own, or with a comma in a mapping of one line.
    fn insert(&self, line: usize, column: usize, text: &str) -> Vec<Edit> {
        let before: String = self.line(line).chars().take(column.saturating_sub(1)).collect();
        if before.trim_end().ends_with(['{', ',']) {
            return vec![self.at(line, column, format!("{text}, "))];
        }
        let comma = if self.is_json { "," } else { "" };
        if before.trim().is_empty() {
            return vec![self.at(line, 1, format!("{before}{text}{comma}\n"))];
        }
        // A list's dash is part of the indentation.
        let indent: String = before.chars().map(|character| if character == '\t' { '\t' } else { ' ' }).collect();
        vec![self.at(line, column, format!("{text}{comma}\n{indent}"))]
    }

    /// Inserts before everything else.
    pub(super) fn at_the_top(&self, text: &str) -> Edit {
        self.at(1, 1, text.to_owned())
    }

    fn at(&self, line: usize, column: usize, text: String) -> Edit {
        Edit { place: Place::new((line, column), (line, column)), text }
    }

    fn indent(&self, line: usize) -> String {
        self.line(line).chars().take_while(|character| character.is_whitespace()).collect()
    }
}
