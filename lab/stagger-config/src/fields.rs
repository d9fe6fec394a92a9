//! Reading of mappings, so that no field is dropped without a word.

use core::time::Duration;

use crate::entry::{Found, Remark, RemarkKind, Setting};
use crate::position::Span;
use crate::tree::{Member, Node, Value, placeholders};

/// What is said about a field that has not been taken.
pub(crate) const NOT_READ: &str = "not a field that is read here";

/// A mapping that is being read.
pub(crate) struct Fields<'a> {
    pub(crate) path: String,
    pub(crate) span: Span,
    members: &'a [Member],
    is_taken: Vec<bool>,
}

/// A field that is present and not null.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    pub(crate) path: String,
    pub(crate) key_span: Span,
    pub(crate) node: &'a Node,
}

/// Returns a name without what distinguishes `num_retries`, `numRetries` and `num-retries`.
fn simplified(name: &str) -> String {
    name.chars()
        .filter(|character| !matches!(character, '_' | '-'))
        .map(|character| character.to_ascii_lowercase())
        .collect()
}

impl<'a> Fields<'a> {
    /// Starts to read a mapping; anything else has no fields.
    pub(crate) fn of(node: &'a Node, path: impl Into<String>) -> Self {
        let members = node.members();
        Self { path: path.into(), span: node.span, members, is_taken: vec![false; members.len()] }
    }

    /// Takes a field, in any of the spellings with capitals, underscores and hyphens. `null` counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<Field<'a>> {
        let wanted = simplified(name);
        let mut found = None;
        for (member, is_taken) in self.members.iter().zip(&mut self.is_taken) {
            if simplified(&member.key) == wanted {
                *is_taken = true;
                // The last one counts.
                found = Some(member);
            }
        }
        let member = found?;
        if member.node.is_null() { None } else { Some(self.field(member)) }
    }

    /// Returns whether one of these fields is present.
    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        let is_named = |member: &&Member| names.iter().any(|name| simplified(name) == simplified(&member.key));
        self.members.iter().filter(is_named).any(|member| !member.node.is_null())
    }

    fn field(&self, member: &'a Member) -> Field<'a> {
        let path = join(&self.path, &member.key);
        Field { path, key_span: member.key_span, node: &member.node }
    }

    /// Takes the first of several fields that is present.
    pub(crate) fn take_any(&mut self, names: &[&str]) -> Option<Field<'a>> {
        let found: Vec<_> = names.iter().filter_map(|name| self.take(name)).collect();
        found.into_iter().next()
    }

    /// Takes a field and reads its value.
    pub(crate) fn read<T>(&mut self, name: &str, read: impl FnOnce(&Field<'a>) -> Found<T>) -> Found<T> {
        self.read_any(&[name], read)
    }

    /// Takes the first of several fields that is present, and reads its value.
    pub(crate) fn read_any<T>(&mut self, names: &[&str], read: impl FnOnce(&Field<'a>) -> Found<T>) -> Found<T> {
        match self.take_any(names) {
            Some(field) => read(&field),
            None => Found::Absent,
        }
    }

    /// Takes a field with a whole number.
    pub(crate) fn count(&mut self, name: &str, remarks: &mut Vec<Remark>) -> Found<u32> {
        self.read(name, |field| field.count(remarks))
    }

    /// Takes a field with a number.
    pub(crate) fn number(&mut self, name: &str, remarks: &mut Vec<Remark>) -> Found<f64> {
        self.read(name, |field| field.number(remarks))
    }

    /// Takes a field with a truth value.
    pub(crate) fn flag(&mut self, name: &str, remarks: &mut Vec<Remark>) -> Found<bool> {
        self.read(name, |field| field.flag(remarks))
    }

    /// Takes a field with a length of time.
    pub(crate) fn duration(
        &mut self,
        name: &str,
        remarks: &mut Vec<Remark>,
        parse: fn(&str) -> Option<Duration>,
        example: &str,
    ) -> Found<Duration> {
        self.read(name, |field| field.duration(remarks, parse, example))
    }

    /// Takes a field with a text.
    pub(crate) fn text(&mut self, name: &str) -> Option<&'a str> {
        self.take(name)?.text()
    }

    /// Takes all fields that nobody has asked for.
    pub(crate) fn rest(&mut self) -> Vec<Field<'a>> {
        let mut left = Vec::new();
        for (member, is_taken) in self.members.iter().zip(&self.is_taken) {
            if !is_taken && !member.node.is_null() {
                left.push(self.field(member));
            }
        }
        self.is_taken.fill(true);
        left
    }

    /// Adds a remark for each field of these names: what it does cannot be said as a policy.
    pub(crate) fn unmapped(&mut self, fields: &[(&str, &str)], remarks: &mut Vec<Remark>) {
        for (name, text) in fields {
            if let Some(field) = self.take(name) {
                remarks.push(field.remark(RemarkKind::Unmapped, *text));
            }
        }
    }

    /// Ends the reading: what was not asked for is not known here.
    pub(crate) fn finish(mut self, remarks: &mut Vec<Remark>) {
        for field in self.rest() {
            remarks.push(field.remark(RemarkKind::Unmapped, NOT_READ));
        }
    }
}

pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The key and the value of a field if both are on one line, otherwise the key.
pub(crate) fn span(key: Span, value: Span) -> Span {
    if key.start.line == value.end.line && key.start <= value.start { Span::new(key.start, value.end) } else { key }
}

impl<'a> Field<'a> {
    pub(crate) fn remark(&self, kind: RemarkKind, text: impl Into<String>) -> Remark {
        Remark { kind, path: self.path.clone(), span: self.span(), text: text.into() }
    }

    pub(crate) fn span(&self) -> Span {
        span(self.key_span, self.node.span)
    }

    pub(crate) fn fields(&self) -> Fields<'a> {
        Fields::of(self.node, self.path.clone())
    }

    /// The elements of a list, and their paths.
    pub(crate) fn items(&self) -> Vec<(String, &'a Node)> {
        self.node.items().iter().enumerate().map(|(at, node)| (format!("{}[{at}]", self.path), node)).collect()
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        self.node.text()
    }

    /// Adds what is to be said of a value that the file does not state by itself. Returns whether it is known.
    pub(crate) fn says(&self, remarks: &mut Vec<Remark>) -> bool {
        let Some(placeholder) = &self.node.placeholder else { return true };
        let is_known = !matches!(self.node.value, Value::Unknown);
        let (kind, text) = placeholders::said(placeholder, is_known);
        remarks.push(self.remark(kind, text));
        is_known
    }

    /// Adds a remark that the system refuses the value.
    pub(crate) fn refused<T>(&self, remarks: &mut Vec<Remark>, wanted: &str) -> Found<T> {
        let text = match &self.node.value {
            Value::Scalar { text, .. } => format!("`{}` is not {wanted}", shortened(text)),
            _ => format!("must be {wanted}"),
        };
        remarks.push(self.remark(RemarkKind::Invalid, text));
        Found::Unknown(self.span())
    }

    /// Reads a value, or adds a remark that says what is wanted. Never `Absent`.
    pub(crate) fn parse<T>(
        &self,
        remarks: &mut Vec<Remark>,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Found<T> {
        if !self.says(remarks) {
            return Found::Unknown(self.span());
        }
        if let Some(text) = self.text()
            && let Some(value) = parse(text)
        {
            return Found::Known(Setting::stated(value, self.span()));
        }
        self.refused(remarks, wanted)
    }

    /// Reads a whole number, which JSON and YAML may also write as `4.0`, and protobuf as text.
    pub(crate) fn count(&self, remarks: &mut Vec<Remark>) -> Found<u32> {
        self.parse(remarks, "a whole number of 0 or more", whole)
    }

    /// Reads a whole number of which 0 is not accepted.
    pub(crate) fn positive(&self, remarks: &mut Vec<Remark>) -> Found<u32> {
        self.parse(remarks, "a whole number of 1 or more", |text| whole(text).filter(|&number| number > 0))
    }

    pub(crate) fn number(&self, remarks: &mut Vec<Remark>) -> Found<f64> {
        self.parse(remarks, "a number", |text| text.parse().ok().filter(|number: &f64| number.is_finite()))
    }

    pub(crate) fn flag(&self, remarks: &mut Vec<Remark>) -> Found<bool> {
        self.parse(remarks, "true or false", |text| match text {
            "true" | "True" | "TRUE" | "yes" | "on" => Some(true),
            "false" | "False" | "FALSE" | "no" | "off" => Some(false),
            _ => None,
        })
    }

    pub(crate) fn duration(
        &self,
        remarks: &mut Vec<Remark>,
        parse: fn(&str) -> Option<Duration>,
        example: &str,
    ) -> Found<Duration> {
        self.parse(remarks, &format!("a length of time, such as {example}"), parse)
    }

    /// Reads a list of words: a list, or one text with commas.
    ///
    /// Those that are not known are left out; ask [`has_unknown`](Self::has_unknown) for them.
    pub(crate) fn words(&self) -> Vec<&'a str> {
        let texts: Vec<&str> = match &self.node.value {
            Value::List(items) => items.iter().filter_map(Node::text).collect(),
            _ => self.text().into_iter().collect(),
        };
        texts.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|word| !word.is_empty()).collect()
    }
}

impl Field<'_> {
    /// Returns whether a word of the list is not known.
    pub(crate) fn has_unknown(&self) -> bool {
        let is_unknown = |node: &Node| matches!(node.value, Value::Unknown);
        is_unknown(self.node) || self.node.items().iter().any(is_unknown)
    }
}

/// Parses a whole number, also if it is written with a fraction of zero.
pub(crate) fn whole(text: &str) -> Option<u32> {
    let text = text.trim();
    match text.split_once('.') {
        Some((digits, zeros)) if zeros.bytes().all(|digit| digit == b'0') => digits.parse().ok(),
        _ => text.parse().ok(),
    }
}

/// Cuts off what is too long for a message.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(LONGEST).collect();
    if characters.next().is_some() { start + "…" } else { start }
}
