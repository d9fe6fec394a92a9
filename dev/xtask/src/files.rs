//! The files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::Result;

/// Returns the root directory of the workspace.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// Returns the path from the root of the workspace.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Returns the files with this extension in a directory and its subdirectories, ordered by path. A missing directory
/// has none.
pub(crate) fn files(directory: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if directory.is_dir() {
        for path in entries(directory)? {
            if path.is_dir() {
                found.extend(files(&path, extension)?);
            } else if path.extension().is_some_and(|other| other == extension) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Returns what is in a directory, ordered by path.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Removes a directory with everything in it, and creates it again.
pub(crate) fn emptied(directory: &Path) -> Result {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    Ok(fs::create_dir_all(directory)?)
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
