//! What the server has stored, in a file that outlives it. A message is written before it is acknowledged.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Result, Write};
use std::path::Path;

/// Marks a violation: two connections of one client, or a message that arrived before its predecessor.
const VIOLATION: &str = "violation";

/// Stores each message once: its client and its number, counted from 1.
#[derive(Debug)]
pub(super) struct Store {
    file: File,
    last: HashMap<String, u64>,
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut last = HashMap::new();
        for (client, number) in read(path)? {
            last.insert(client, number);
        }
        Ok(Self { file: OpenOptions::new().create(true).append(true).open(path)?, last })
    }

    /// Stores a message, unless it is already stored.
    pub(super) fn put(&mut self, client: &str, number: u64) -> Result<()> {
        let last = self.last.entry(client.to_owned()).or_default();
        if number <= *last {
            return Ok(());
        }
        if number > *last + 1 {
            return self.violation(&format!("{client}:{number}"));
        }
        *last = number;
        // One write, so that after a kill a line is either complete or missing.
        self.file.write_all(format!("{client} {number}\n").as_bytes())
    }

    pub(super) fn violation(&mut self, what: &str) -> Result<()> {
        self.file.write_all(format!("{VIOLATION} {what}\n").as_bytes())
    }
}

/// Reads all stored messages in order.
///
/// # Panics
/// If the file contains a violation.
pub(crate) fn read(path: &Path) -> Result<Vec<(String, u64)>> {
    let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
    let line = |line: &str| {
        let (client, number) = line.split_once(' ').expect("two words");
        assert_ne!(client, VIOLATION, "{line}");
        (client.to_owned(), number.parse().expect("a number"))
    };
    Ok(text.lines().map(line).collect())
}
