//! Golden vectors for the JavaScript client: what `stagger-core` draws and parses.

mod delays;
mod policies;
mod quiet;
mod reconnect;
mod retry;
mod window;

use core::fmt::Write as _;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::files::shown;
use crate::workspace::root;

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
    if !arguments.is_empty() {
        return Err("takes no arguments".into());
    }
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
    let lists = vectors.as_object().ok_or("vectors must be an object of lists")?;
    let lists = lists.iter().map(|(name, list)| {
        let rows = list.as_array().ok_or("vectors must be lists")?;
        let rows: Vec<_> = rows.iter().map(|row| format!("    {row}")).collect();
        Ok(format!("  \"{name}\": [\n{}\n  ]", rows.join(",\n")))
    });
    let lists: Vec<_> = lists.collect::<core::result::Result<_, Error>>()?;
    Ok(format!("{{\n{}\n}}\n", lists.join(",\n")))
}

/// Returns bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
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
