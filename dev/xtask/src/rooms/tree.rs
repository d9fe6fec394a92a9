//! Small crates for tests.

use std::fs;

use tempfile::TempDir;

/// Writes a crate: the path of each file in its `src`, and its text.
pub(super) fn tree(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}
