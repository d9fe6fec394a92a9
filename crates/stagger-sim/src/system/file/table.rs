//! Tables of a file: keys are taken out one by one, and problems and numbers are noted.

use core::cell::RefCell;
use core::fmt;
use core::ops::Range;
use core::time::Duration;
use std::collections::BTreeMap;
use std::path::Path;

use stagger_core::text::{Compact, Outside, ParseValueError, Rate, nearest, parse_count, parse_duration, parse_number};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::FileProblem;

/// What is known while a file is read.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    /// The directory of the file, for the files that it names.
    pub(super) directory: Option<&'a Path>,
    /// Values that replace those of the file, by path.
    pub(super) values: &'a BTreeMap<String, String>,
    problems: RefCell<Vec<(Option<usize>, String)>>,
    numbers: RefCell<Vec<FileNumber>>,
    places: RefCell<BTreeMap<String, Range<usize>>>,
}

/// What has been read: problems in the order of the file, numbers, and the bytes of values and heads of tables, by
/// path.
pub(super) struct FileContents {
    pub(super) problems: Vec<FileProblem>,
    pub(super) numbers: Vec<FileNumber>,
    pub(super) places: BTreeMap<String, Range<usize>>,
}

/// A table whose keys are taken out one after the other.
pub(super) struct Table<'a> {
    reader: &'a Reader<'a>,
    /// The path of the table, with a dot at its end unless it is the whole file.
    pub(super) path: String,
    pub(super) at: usize,
    entries: Vec<Entry<'a>>,
    known: Vec<&'static str>,
}

pub(super) struct Entry<'a> {
    pub(super) key: &'a str,
    pub(super) at: usize,
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(text: &'a str, directory: Option<&'a Path>, values: &'a BTreeMap<String, String>) -> Self {
        Self {
            text,
            directory,
            values,
            problems: RefCell::new(Vec::new()),
            numbers: RefCell::new(Vec::new()),
            places: RefCell::new(BTreeMap::new()),
        }
    }

    pub(super) fn problem(&self, at: Option<usize>, message: impl Into<String>) {
        self.problems.borrow_mut().push((at, message.into()));
    }

    pub(super) fn has_problems(&self) -> bool {
        !self.problems.borrow().is_empty()
    }

    pub(super) fn finish(self) -> FileContents {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|(at, _)| *at);
        let problems = problems.into_iter().map(|(at, message)| FileProblem::new(self.text, at, message));
        let (problems, numbers) = (problems.collect(), self.numbers.into_inner());
        FileContents { problems, numbers, places: self.places.into_inner() }
    }

    /// Notes where a value or the head of a table is.
    pub(super) fn place(&self, path: &str, bytes: Range<usize>) {
        self.places.borrow_mut().insert(path.to_owned(), bytes);
    }

    pub(super) fn number(&self, path: String, unit: Unit, value: f64) {
        self.numbers.borrow_mut().push(FileNumber { path, unit, value });
    }
}

impl<'a> Table<'a> {
    pub(super) fn new(reader: &'a Reader<'a>, path: impl Into<String>, at: usize, table: &'a DeTable<'a>) -> Self {
        let entries = table.iter().map(|(key, value)| Entry { key: key.get_ref(), at: key.span().start, value });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|entry| entry.at);
        Self { reader, path: path.into(), at, entries, known: Vec::new() }
    }

    /// Returns an empty table, for one that the file does not have: all its values are defaults.
    pub(super) fn missing(reader: &'a Reader<'a>, path: impl Into<String>, at: usize) -> Self {
        Self { reader, path: path.into(), at, entries: Vec::new(), known: Vec::new() }
    }

    /// Takes out a value.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Entry<'a>> {
        self.known.push(key);
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        let entry = self.entries.remove(at);
        self.reader.place(&format!("{}{key}", self.path), entry.value.span());
        Some(entry)
    }

    /// Returns whether the table has a value that was not taken out yet.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key) || self.given(key).is_some()
    }

    /// Returns the position of a key.
    pub(super) fn position(&self, key: &str) -> Option<usize> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.at)
    }

    /// Returns whether a value is a text that has this part.
    pub(super) fn contains(&self, key: &str, part: &str) -> bool {
        if let Some(given) = self.given(key) {
            return given.contains(part);
        }
        match self.entries.iter().find(|entry| entry.key == key) {
            Some(entry) => entry.value.get_ref().as_str().is_some_and(|text| text.contains(part)),
            None => false,
        }
    }

    /// Returns the value that replaces that of the file.
    fn given(&self, key: &str) -> Option<&str> {
        self.reader.values.get(&format!("{}{key}", self.path)).map(String::as_str)
    }

    /// Takes out all entries: a table whose keys are names.
    pub(super) fn take_all(&mut self) -> Vec<Entry<'a>> {
        core::mem::take(&mut self.entries)
    }

    /// Takes out a table.
    pub(super) fn table(&mut self, key: &'static str) -> Option<Self> {
        let entry = self.take(key)?;
        self.as_table(&entry, format!("{}{key}.", self.path))
    }

    /// Takes out a list of tables.
    pub(super) fn list(&mut self, key: &'static str) -> Vec<(&'a DeTable<'a>, Range<usize>)> {
        let Some(entry) = self.take(key) else { return Vec::new() };
        let Some(list) = entry.value.get_ref().as_array() else {
            self.reader.problem(Some(entry.at), format!("`{key}` is not a list; begin each with [[{key}]]"));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for one in list {
            match one.get_ref().as_table() {
                Some(table) => tables.push((table, one.span())),
                None => self
                    .reader
                    .problem(Some(one.span().start), format!("this {key} is not a table; begin each with [[{key}]]")),
            }
        }
        tables
    }

    pub(super) fn as_table(&self, entry: &Entry<'a>, path: String) -> Option<Self> {
        let Some(table) = entry.value.get_ref().as_table() else {
            self.problem(entry.value.span(), format!("`{}` is not a table", Outside(entry.key)));
            return None;
        };
        self.reader.place(path.trim_end_matches('.'), entry.value.span());
        Some(Table::new(self.reader, path, entry.at, table))
    }

    /// Takes out a list of lengths; `None` if the value is not a list.
    pub(super) fn lengths(&mut self, key: &'static str) -> Option<Vec<Duration>> {
        let value = self.entries.iter().find(|entry| entry.key == key)?.value;
        let list = value.get_ref().as_array()?;
        self.take(key);
        let mut lengths = Vec::new();
        for one in list {
            match duration(&scalar(one.get_ref()).unwrap_or_default()) {
                Ok(length) => lengths.push(length),
                Err(error) => self.problem(one.span(), format!("{key}: {error}")),
            }
        }
        Some(lengths)
    }

    /// Takes out a text, a number or a truth value, as text.
    pub(super) fn text(&mut self, key: &'static str) -> Option<(String, Range<usize>)> {
        let entry = self.take(key);
        if let Some(given) = self.given(key) {
            let span = match &entry {
                Some(entry) => entry.value.span(),
                None => self.at..self.at,
            };
            return Some((given.to_owned(), span));
        }
        let entry = entry?;
        let span = entry.value.span();
        match scalar(entry.value.get_ref()) {
            Some(text) => Some((text, span)),
            None => {
                self.problem(span, format!("`{key}` is neither a text nor a number"));
                None
            }
        }
    }

    /// Takes out a value and parses it.
    pub(super) fn parsed<T>(&mut self, key: &'static str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let (text, span) = self.text(key)?;
        parse(&text).map_err(|error| self.problem(span, format!("{key}: {error}"))).ok()
    }

    /// Takes out a number and notes its value, so that it can be changed by its path.
    fn noted<T: Copy>(
        &mut self,
        key: &'static str,
        unit: Unit,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, String>,
        number: impl FnOnce(T) -> f64,
    ) -> T {
        let value = self.parsed(key, parse).unwrap_or(default);
        self.reader.number(format!("{}{key}", self.path), unit, number(value));
        value
    }

    pub(super) fn duration(&mut self, key: &'static str, default: Duration) -> Duration {
        self.noted(key, Unit::Seconds, default, duration, |value| value.as_secs_f64())
    }

    pub(super) fn count(&mut self, key: &'static str, default: u32) -> u32 {
        self.noted(key, Unit::Count, default, count, f64::from)
    }

    pub(super) fn rate(&mut self, key: &'static str, default: f64) -> f64 {
        self.noted(key, Unit::PerSecond, default, rate, |value| value)
    }

    /// Takes out a share, such as 0.9 or 90%.
    pub(super) fn share(&mut self, key: &'static str, default: f64) -> f64 {
        self.noted(key, Unit::Share, default, share, |value| value)
    }

    pub(super) fn factor(&mut self, key: &'static str, default: f64) -> f64 {
        let number = |text: &str| parse_number(text).map_err(|error| error.to_string());
        self.noted(key, Unit::Factor, default, number, |value| value)
    }

    /// Takes out one of several words.
    pub(super) fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.parsed(key, |text| {
            if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
                return Ok(*value);
            }
            let known: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            Err(format!("unknown value \"{}\"; expected one of {}", Outside(text), known.join(", ")))
        })
    }

    /// Reports a key that the table needs.
    pub(super) fn is_missing(&self, key: &str, example: &str) {
        self.problem(self.at..self.at, format!("`{key}` is missing; add a line such as {example}"));
    }

    pub(super) fn problem(&self, span: Range<usize>, message: impl Into<String>) {
        self.reader.problem(Some(span.start), message);
    }

    /// Reports the keys that are left over.
    pub(super) fn finish(self) {
        for entry in &self.entries {
            let message = match (nearest(entry.key, self.known.iter().copied()), &self.known[..]) {
                (Some(nearest), _) => format!("unknown key `{}`; did you mean `{nearest}`?", Outside(entry.key)),
                (None, known) => format!("unknown key `{}`; expected one of {}", Outside(entry.key), known.join(", ")),
            };
            self.problem(entry.at..entry.at, message);
        }
    }
}

/// Returns the text of a value that is not a list, a table or a date.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        _ => return None,
    })
}

/// Parses a number of a file, as the file would have it.
pub(super) fn number(unit: Unit, text: &str) -> Result<f64, String> {
    match unit {
        Unit::Seconds => duration(text).map(|length| length.as_secs_f64()),
        Unit::PerSecond => rate(text),
        Unit::Count => count(text).map(f64::from),
        Unit::Share => share(text),
        Unit::Factor => parse_number(text).map_err(|error| error.to_string()),
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let length = parse_duration(text).map_err(|error| error.to_string())?;
    length
        .ok_or_else(|| format!("\"{}\" is not finite; expected a length such as \"500ms\" or \"1.5s\"", Outside(text)))
}

fn rate(text: &str) -> Result<f64, String> {
    text.parse().map(Rate::get).map_err(|error: ParseValueError| error.to_string())
}

pub(super) fn count(text: &str) -> Result<u32, String> {
    if text == "0" {
        return Ok(0);
    }
    let count = parse_count(text).map_err(|error| error.to_string())?;
    u32::try_from(count.get()).map_err(|_| format!("{text} is above {}; use a smaller number", u32::MAX))
}

fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    match parse_number(number) {
        Ok(number) if number / whole <= 1.0 => Ok(number / whole),
        _ => Err(format!("\"{}\" is not a share from 0 to 1; expected a form such as 0.9 or \"90%\"", Outside(text))),
    }
}

/// A number of a file, which can be changed by its path.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FileNumber {
    /// Its path, such as `users.rate`, `edge.orders-database.timeout` or `trigger.1.for`.
    pub path: String,
    /// What it counts.
    pub unit: Unit,
    /// Its value: that of the file, or the default.
    pub value: f64,
}

/// What a number of a file counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// A length of time, in seconds.
    Seconds,
    /// A rate per second.
    PerSecond,
    /// A whole number.
    Count,
    /// A share, from 0 to 1.
    Share,
    /// Any other number.
    Factor,
}

impl Unit {
    /// Returns a value as the file would have it: `1.5s`, `50/s`, `3`, `0.9`.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        // The conversions saturate, and a file rejects what is out of its range.
        match self {
            Self::Seconds => {
                let length = Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(Duration::MAX);
                Compact(length).to_string()
            }
            Self::PerSecond => format!("{value}/s"),
            Self::Count => format!("{}", value.round() as u64),
            Self::Share | Self::Factor => format!("{value}"),
        }
    }

    /// Parses a value as the file would have it.
    ///
    /// # Errors
    /// What is wrong, and what is expected.
    pub fn parse(self, text: &str) -> Result<f64, String> {
        number(self, text)
    }

    /// Returns whether only whole numbers are values.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::Count)
    }
}

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.path, self.unit.text(self.value))
    }
}
