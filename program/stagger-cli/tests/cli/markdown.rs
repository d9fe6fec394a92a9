//! The pages that readers of the project see, for the tests that walk them all.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the README and all pages of `docs`.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut found = vec![Path::new(PROJECT).join("README.md")];
    let mut directories = vec![Path::new(PROJECT).join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("the directory is read") {
            let path = entry.expect("the entry is read").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found
}
