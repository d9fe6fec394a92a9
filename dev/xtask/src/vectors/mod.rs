//! Golden vectors for the JavaScript client: what `stagger-core` draws and parses.

mod delays;
mod policies;
mod quiet;
mod reconnect;
mod retry;
mod window;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use stagger_core::Seed;

use crate::files::{hex, root, shown};
use crate::shell::{Result, no_arguments};

/// The files, and what each of them holds.
const FILES: [(&str, fn() -> Result<Value>); 6] = [
    ("delays.json", delays::vectors),
    ("policies.json", policies::vectors),
    ("quiet.json", quiet::vectors),
    ("reconnect.json", reconnect::vectors),
    ("retry.json", retry::vectors),
    ("window.json", window::vectors),
];

/// Writes the vectors.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    no_arguments(arguments)?;
    for (name, vectors) in FILES {
        let path = path(name);
        fs::write(&path, text(&vectors()?)?)?;
        println!("wrote {}", shown(&path));
    }
    Ok(())
}

fn path(name: &str) -> PathBuf {
    root().join("clients/js/test/vectors").join(name)
}

/// Returns the text of a file: one line for each element of its lists, so that differences can be read.
fn text(vectors: &Value) -> Result<String> {
    let mut lists = Vec::new();
    for (name, rows) in vectors.as_object().ok_or("vectors must be an object of lists")? {
        let rows = rows.as_array().ok_or("vectors must be lists")?;
        let rows: Vec<_> = rows.iter().map(|row| format!("    {row}")).collect();
        lists.push(format!("  \"{name}\": [\n{}\n  ]", rows.join(",\n")));
    }
    Ok(format!("{{\n{}\n}}\n", lists.join(",\n")))
}

/// Runs a course of events for each of `seeds` seeds. Returns the first `listed` lines of the first course, and a hash
/// of all lines.
fn courses(
    seeds: u64,
    listed: usize,
    mut course: impl FnMut(Seed) -> Result<Vec<String>>,
) -> Result<(Vec<String>, String)> {
    let mut hash = Sha256::new();
    let mut first = Vec::new();
    for id in 0..seeds {
        let mut lines = course(Seed::new(seeds).for_call(id))?;
        hash.update(lines.join("\n"));
        if id == 0 {
            lines.truncate(listed);
            first = lines;
        }
    }
    Ok((first, hex(&hash.finalize())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_javascript_client_are_current() {
        if std::env::var_os("STAGGER_BLESS").is_some() {
            run(&[]).unwrap();
        }
        for (name, vectors) in FILES {
            let path = path(name);
            let committed = fs::read_to_string(&path).unwrap_or_default();
            let is_current = committed == text(&vectors().unwrap()).unwrap();
            assert!(is_current, "{} is outdated; run `cargo xtask vectors` and review the difference", shown(&path));
        }
    }
}
