use std::collections::HashMap;

use super::entry::{Log, LogEntry};
use super::error::{LineError, LogError};
use super::plain::Columns;
use super::sentence;

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
        if let Some(entry) = sentence::read(line, text) {
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
        use super::json::{Line, read};
        match read(line, text)? {
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
