//! What the server has stored, in a file that outlives it: a line is in it before its message is acknowledged.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Result, Write};
use std::path::Path;

/// What is wrong, beside the messages: two connections of one client, a message that came before the one in front of it.
const WRONG: &str = "wrong";

/// Each message once: whose it is and its number, which counts from 1.
#[derive(Debug)]
pub(super) struct Store {
    file: File,
    last: HashMap<String, u64>,
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut last = HashMap::new();
        for (who, number) in read(path)? {
            last.insert(who, number);
        }
        Ok(Self { file: OpenOptions::new().create(true).append(true).open(path)?, last })
    }

    /// Stores it, unless it is there already.
    pub(super) fn put(&mut self, who: &str, number: u64) -> Result<()> {
        let last = self.last.entry(who.to_owned()).or_default();
        if number <= *last {
            return Ok(());
        }
        if number > *last + 1 {
            return self.wrong(&format!("{who}:{number}"));
        }
        *last = number;
        // In one piece: after a kill, a line is whole or not there.
        self.file.write_all(format!("{who} {number}\n").as_bytes())
    }

    pub(super) fn wrong(&mut self, what: &str) -> Result<()> {
        self.file.write_all(format!("{WRONG} {what}\n").as_bytes())
    }
}

/// Every line of the file that is a message, in order.
///
/// # Panics
/// At a line that says what went wrong.
pub(super) fn read(path: &Path) -> Result<Vec<(String, u64)>> {
    let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
    let line = |line: &str| {
        let (who, number) = line.split_once(' ').expect("two words");
        assert_ne!(who, WRONG, "{line}");
        (who.to_owned(), number.parse().expect("a number"))
    };
    Ok(text.lines().map(line).collect())
}
