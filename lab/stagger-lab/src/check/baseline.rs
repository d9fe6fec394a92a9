//! Findings that are known already, in a file that a build compares with.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::{fmt, fs};

use serde::{Deserialize, Serialize};
use stagger_terminal::input;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;

/// The longest baseline in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Findings that are known, and do not count: a file with the schema `stagger.check-baseline/1`.
///
/// A finding is known by its rule, its file or policy, and its path within the file, so that it stays known when lines
/// move.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Baseline {
    schema: String,
    findings: Vec<Known>,
}

/// A known finding, and how often it occurs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    #[serde(flatten)]
    key: Key,
    times: u32,
}

/// What a finding is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Key {
    /// The file, with slashes, or the policy.
    pub(super) file: String,
    pub(super) rule: String,
    /// The path within the file; empty for a policy.
    pub(super) path: String,
}

const SCHEMA: &str = "stagger.check-baseline/1";

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.rule, self.file, self.path)
    }
}

impl Baseline {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let name = path_shown(path);
        let text = input::text("--baseline: ", &name, File::open(path), MAX_BYTES)?;
        let again = "write it again with --write-baseline";
        let read: Self = serde_json::from_str(&text).map_err(|error| {
            CliError::usage(format_args!("--baseline: {name} cannot be read as a baseline: {error}; {again}"))
        })?;
        if read.schema != SCHEMA {
            let schema = &read.schema;
            return Err(CliError::usage(format_args!(
                "--baseline: {name} has the schema `{schema}`, not {SCHEMA}; {again}"
            )));
        }
        Ok(read)
    }

    /// Creates the baseline of findings.
    pub(super) fn of(keys: impl Iterator<Item = Key>) -> Self {
        let mut times: BTreeMap<Key, u32> = BTreeMap::new();
        keys.for_each(|key| *times.entry(key).or_default() += 1);
        let findings = times.into_iter().map(|(key, times)| Known { key, times }).collect();
        Self { schema: SCHEMA.to_owned(), findings }
    }

    /// Writes a file, one finding on each line, so that a difference of two is readable.
    pub(super) fn write(&self, path: &Path) -> Result<(), CliError> {
        let failed = |error| CliError::io(format_args!("--write-baseline: cannot write {}", path_shown(path)), error);
        let lines = self.findings.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let lines = lines.map_err(|error| failed(error.into()))?.join(",\n");
        fs::write(path, format!("{{\"schema\":\"{SCHEMA}\",\"findings\":[\n{lines}\n]}}\n")).map_err(failed)
    }

    /// Returns what takes each finding out once for each time that it is known.
    pub(super) fn known(&self) -> BTreeMap<Key, u32> {
        self.findings.iter().map(|known| (known.key.clone(), known.times)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("baseline.json");
        let key = |rule: &str| Key { file: "a.yaml".to_owned(), rule: rule.to_owned(), path: "http[0]".to_owned() };
        for keys in [vec![], vec![key("C001"), key("S013"), key("C001")]] {
            Baseline::of(keys.iter().cloned()).write(&path).unwrap();
            let known = Baseline::read(&path).unwrap().known();
            assert_eq!(known.values().sum::<u32>() as usize, keys.len());
            assert_eq!(known.get(&key("C001")), keys.first().map(|_| &2));
        }
        for text in ["", "[]", "{\"schema\":\"other/1\",\"findings\":[]}", "{\"schema\":\"stagger.check-baseline/1\"}"]
        {
            fs::write(&path, text).unwrap();
            let error = Baseline::read(&path).unwrap_err().to_string();
            assert!(error.contains("--write-baseline"), "{text}: {error}");
        }
    }
}
