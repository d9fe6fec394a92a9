//! Any text parses as a log that can be checked, or as an error with the numbers of its lines.

use stagger_core::Policy;
use stagger_sim::lint::log::{findings, read};

/// Parses `text` as a log of delays.
pub fn check(text: &str) {
    let lines = text.lines().count();
    match read(text) {
        Ok(log) => {
            assert!(log.entries.iter().all(|entry| (1..=lines).contains(&entry.line) && entry.retry != Some(0)));
            assert!(log.entries.len() + log.asked + log.others <= lines);
            let policy = log.policies.first().copied().unwrap_or(Policy::DEFAULT);
            for finding in findings(&log, Some(&policy)).into_iter().chain(findings(&log, None)) {
                assert!(!finding.facts().is_empty());
            }
        }
        Err(error) => {
            assert!(error.faults().iter().all(|fault| (1..=lines).contains(&fault.line) && !fault.message.is_empty()));
            assert!(error.faults().is_sorted_by_key(|fault| fault.line) && !error.to_string().is_empty());
        }
    }
}
