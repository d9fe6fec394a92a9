use core::time::Duration;

use stagger_core::text::parse_duration;

use super::entry::LogEntry;

const NAMES: [&str; 4] = ["delay", "client", "retry", "time"];

/// The names of the columns of plain lines, in their order.
#[derive(Clone, Debug)]
pub(super) struct Columns(Vec<&'static str>);

impl Default for Columns {
    fn default() -> Self {
        Self(NAMES.to_vec())
    }
}

impl Columns {
    /// Parses a header line; returns `None` if the line is not a header.
    pub(super) fn named(line: &str) -> Option<Self> {
        let named = |word: &str| NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(word));
        let columns: Vec<&str> = words(line).map(named).collect::<Option<_>>()?;
        let twice = columns.iter().enumerate().any(|(at, column)| columns[..at].contains(column));
        (columns.contains(&"delay") && !twice).then_some(Self(columns))
    }

    /// Parses a line; an error says what was expected.
    pub(super) fn read(&self, line: usize, text: &str) -> Result<LogEntry, String> {
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

pub(super) fn length(word: &str) -> Result<Duration, String> {
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
