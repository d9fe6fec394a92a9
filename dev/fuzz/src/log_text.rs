//! Any text parses as a log that can be checked, or as an error with the numbers of its lines.

use stagger_core::Policy;
use stagger_lint::log::{self, read};

/// Parses `text` as a log of delays.
pub fn check(text: &str) {
    let lines = text.lines().count();
    match read(text) {
        Ok(log) => {
            assert!(log.entries.iter().all(|entry| (1..=lines).contains(&entry.line) && entry.retry != Some(0)));
            assert!(log.entries.len() + log.skipped_hints + log.other_lines <= lines);
            let policy = log.policies.first().copied().unwrap_or(Policy::DEFAULT);
            for finding in log::check(&log, Some(&policy)).into_iter().chain(log::check(&log, None)) {
                assert!(!finding.facts().is_empty());
            }
        }
        Err(error) => {
            assert!(error.errors().iter().all(|line| (1..=lines).contains(&line.line) && !line.message.is_empty()));
            assert!(error.errors().is_sorted_by_key(|line| line.line) && !error.to_string().is_empty());
        }
    }
}
