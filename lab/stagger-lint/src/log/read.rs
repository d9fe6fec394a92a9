use core::fmt;
use core::time::Duration;
use std::collections::HashMap;

use stagger_core::Policy;
use stagger_core::text::{Outside, parse_duration};

/// Reads a log. The [module documentation](super) describes the formats.
///
/// # Errors
/// [`LogError`] names every line that cannot be parsed, and what was expected there.
///
/// ```
/// use stagger_lint::log::read;
///
/// let log = read("# two clients\n1.5s a\n250ms b\n2.9 a\n")?;
/// assert_eq!(log.entries.iter().map(|entry| entry.retry).collect::<Vec<_>>(), [Some(1), Some(1), Some(2)]);
/// assert!(read("soon").unwrap_err().to_string().starts_with("line 1: `soon`"));
/// # Ok::<(), stagger_lint::log::LogError>(())
/// ```
pub fn read(text: &str) -> Result<Log, LogError> {
    let mut reader = Reader::default();
    // Some editors write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if let Err(message) = reader.line(at + 1, trimmed) {
            reader.errors.push(LineError::new(at + 1, &message));
        }
    }
    if reader.errors.is_empty() { Ok(reader.log) } else { Err(LogError { errors: reader.errors }) }
}

#[derive(Default)]
struct Reader {
    log: Log,
    errors: Vec<LineError>,
    columns: Option<Columns>,
    /// Number of delays of each client so far, for lines without a retry.
    counts: HashMap<String, u32>,
    #[cfg(feature = "serde")]
    runs: usize,
}

impl Reader {
    fn line(&mut self, line: usize, text: &str) -> Result<(), String> {
        if text.starts_with('{') {
            return self.json(line, text);
        }
        if let Some(entry) = read_sentence(line, text) {
            self.push(entry);
            return Ok(());
        }
        if self.columns.is_none() {
            self.columns = Columns::named(text);
            if self.columns.is_some() {
                return Ok(());
            }
        }
        let entry = self.columns.get_or_insert_default().read(line, text)?;
        self.push(entry);
        Ok(())
    }

    fn push(&mut self, mut entry: LogEntry) {
        if let (Some(client), None) = (&entry.client, entry.retry) {
            let count = self.counts.entry(client.clone()).or_insert(0);
            *count = count.saturating_add(1);
            entry.retry = Some(*count);
        }
        self.log.entries.push(entry);
    }

    #[cfg(feature = "serde")]
    fn json(&mut self, line: usize, text: &str) -> Result<(), String> {
        use super::json::{Line, read_json};
        match read_json(line, text)? {
            Line::Start(policy) => {
                self.runs += 1;
                if !self.log.policies.contains(&policy) {
                    self.log.policies.push(*policy);
                }
            }
            Line::Delay(mut entry) => {
                if self.runs > 0 {
                    // The lines of an older log do not name their run.
                    entry.client.get_or_insert_with(|| format!("run {}", self.runs));
                }
                self.push(entry);
            }
            Line::Hinted => self.log.skipped_hints += 1,
            Line::Other => self.log.other_lines += 1,
        }
        Ok(())
    }

    #[cfg(not(feature = "serde"))]
    #[allow(clippy::unused_self)] // The signature matches that with the feature.
    fn json(&mut self, _: usize, _: &str) -> Result<(), String> {
        Err("JSON lines require the feature `serde`".to_owned())
    }
}

const NAMES: [&str; 4] = ["delay", "client", "retry", "time"];

/// The names of the columns of plain lines, in their order.
#[derive(Clone, Debug)]
struct Columns(Vec<&'static str>);

impl Default for Columns {
    fn default() -> Self {
        Self(NAMES.to_vec())
    }
}

impl Columns {
    /// Parses a header line; returns `None` if the line is not a header.
    fn named(line: &str) -> Option<Self> {
        let named = |word: &str| NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(word));
        let columns: Vec<&str> = words(line).map(named).collect::<Option<_>>()?;
        let twice = columns.iter().enumerate().any(|(at, column)| columns[..at].contains(column));
        if columns.contains(&"delay") && !twice { Some(Self(columns)) } else { None }
    }

    /// Parses a line; an error says what was expected.
    fn read(&self, line: usize, text: &str) -> Result<LogEntry, String> {
        let mut entry = LogEntry { line, delay: Duration::ZERO, client: None, retry: None, time: None };
        let mut delay = None;
        let mut columns = self.0.iter();
        for word in words(text) {
            let Some(column) = columns.next() else {
                let known = self.0.len();
                return Err(format!("unexpected `{word}` after the {known} columns; expected {EXPECTED}"));
            };
            match *column {
                _ if word == "-" => {}
                "delay" => delay = Some(length(word)?),
                "client" => entry.client = Some(word.to_owned()),
                "time" => entry.time = Some(length(word)?),
                _ => match word.parse() {
                    Ok(retry) if retry > 0 => entry.retry = Some(retry),
                    _ => return Err(format!("invalid retry number `{word}`; retries count from 1")),
                },
            }
        }
        let delay = delay.ok_or_else(|| format!("missing delay; expected {EXPECTED}"))?;
        Ok(LogEntry { delay, ..entry })
    }
}

const EXPECTED: &str = "DELAY [CLIENT [RETRY [TIME]]]";

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split([' ', '\t', ',']).filter(|word| !word.is_empty())
}

fn length(word: &str) -> Result<Duration, String> {
    // Measured values may have more digits than nanoseconds, and exponents.
    if let Ok(seconds) = word.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|error| format!("invalid duration `{word}`: {error}"));
    }
    match parse_duration(word) {
        Ok(Some(length)) => Ok(length),
        Ok(None) => Err(format!("invalid duration `{word}`; expected a value like 1.5 or 250ms")),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a delay from a sentence of a program's log, such as `Attempt 1 failed. Retrying in 0.134s`. Returns `None` if
/// the line is not such a sentence.
///
/// The delay is the length of time after `in`, `for` or `after`, which must follow a form of `retry`, `sleep`, `wait`
/// or `back off`. The number of an attempt that has failed, before that, is the number of the retry.
fn read_sentence(line: usize, text: &str) -> Option<LogEntry> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let waits =
        |word: &&str| ["retry", "sleep", "wait", "backing", "backoff"].iter().any(|verb| bare(word).starts_with(verb));
    let verb = words.iter().position(waits)?;
    let place = words[verb..].iter().position(|word| matches!(bare(word), "in" | "for" | "after"))? + verb;
    let delay = delay(bare(words.get(place + 1)?), words.get(place + 2).map(|unit| bare(unit)))?;

    let mut retry = None;
    if let Some(number) = words[..verb].iter().skip_while(|word| bare(word) != "attempt").nth(1) {
        // Of `2/5` and of `2:`, the number is what comes first.
        let number = bare(number).split(['/', ':']).next().unwrap_or_default();
        retry = number.parse().ok().filter(|number| *number > 0);
    }
    Some(LogEntry { line, delay, client: None, retry, time: None })
}

/// Returns a word without the punctuation around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

fn delay(number: &str, next: Option<&str>) -> Option<Duration> {
    if number.parse::<f64>().is_err() {
        return length(number).ok();
    }
    // Without a unit these are seconds.
    let unit = match next {
        Some("ms" | "millis" | "milliseconds" | "millisecond") => "ms",
        Some("m" | "min" | "minute" | "minutes") => "m",
        _ => "s",
    };
    length(&format!("{number}{unit}")).ok()
}

/// The contents of a log. Complete: it can be built from other sources than [`read`](super::read), too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// The delays, in line order.
    pub entries: Vec<LogEntry>,
    /// The policies recorded in the log, without duplicates, in line order.
    pub policies: Vec<Policy>,
    /// Number of valid JSON lines that contain no delay.
    pub other_lines: usize,
    /// Number of delays skipped because a server or the command requested them.
    pub skipped_hints: usize,
}

/// A measured delay. Complete: it can be built from other sources than [`read`](super::read), too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The line number, from 1.
    pub line: usize,
    /// The delay.
    pub delay: Duration,
    /// The client.
    pub client: Option<String>,
    /// The retry that followed the delay, counted from 1 within the call.
    pub retry: Option<u32>,
    /// The time of that retry, relative to a reference that the whole log shares.
    pub time: Option<Duration>,
}

/// The lines of a log that could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    pub(super) errors: Vec<LineError>,
}

/// A line that could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineError {
    /// The line number, from 1.
    pub line: usize,
    /// The problem, and what was expected.
    pub message: String,
}

impl LineError {
    pub(super) fn new(line: usize, message: &str) -> Self {
        Self { line, message: Outside(message).to_string() }
    }
}

/// Number of lines to name; further lines are counted.
const NAMED: usize = 3;

impl LogError {
    /// Returns the lines that could not be parsed, in order; at least one.
    #[must_use]
    pub fn errors(&self) -> &[LineError] {
        &self.errors
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, line_error) in self.errors.iter().take(NAMED).enumerate() {
            write!(f, "{}line {}: {}", if at == 0 { "" } else { "; " }, line_error.line, line_error.message)?;
        }
        match self.errors.len().saturating_sub(NAMED) {
            0 => Ok(()),
            1 => f.write_str("; and one more line"),
            more => write!(f, "; and {more} more lines"),
        }
    }
}

impl core::error::Error for LogError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_sentences_are_read() {
        for (text, millis, retry) in [
            ("Attempt 1 failed. Retrying in 0.134s", 134, Some(1)),
            ("Attempt 2/5 failed: connection refused. Retrying in 1.5s...", 1_500, Some(2)),
            ("WARN attempt #3 failed, retrying in 250 ms", 250, Some(3)),
            ("Request failed, retrying after 2 seconds (attempt 4)", 2_000, None),
            ("sleeping for 1.25 before the next try", 1_250, None),
            ("Backing off for 1 minute.", 60_000, None),
        ] {
            let entry = read_sentence(7, text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((entry.line, entry.delay.as_millis(), entry.retry), (7, millis, retry), "{text}");
        }
    }

    #[test]
    fn other_lines_are_not_sentences() {
        for text in
            ["1.5 a 1", "retry", "retrying in", "retrying in a while", "in 5s", "delay,client,retry", "retry 5s"]
        {
            assert_eq!(read_sentence(1, text), None, "{text}");
        }
    }
}
