//! The steps that run nothing: format, clippy, and combinations of features.

use crate::ci::{Note, Options};
use crate::error::Result;
use crate::shell::Shell;
use crate::targets::LINK_MANIFEST;
use crate::testing::FUZZ_MANIFEST;
use crate::workspace::{Workspace, everything};

pub(crate) fn format(_: &Options) -> Result<Note> {
    Shell::cargo("fmt --all --check").run()?;
    for manifest in [FUZZ_MANIFEST, LINK_MANIFEST] {
        Shell::cargo("fmt --check --manifest-path").args([manifest]).run()?;
    }
    Ok(None)
}

pub(crate) fn clippy(_: &Options) -> Result<Note> {
    Shell::cargo("clippy --all-targets").args(everything()?).args(["--", "-D", "warnings"]).run()?;
    Ok(None)
}

/// Compiles each published package with no feature, each feature alone, and all features.
pub(crate) fn features(_: &Options) -> Result<Note> {
    let mut checked = 0;
    for package in Workspace::here()?.published() {
        let mut sets = vec![vec!["--no-default-features"]];
        for feature in &package.features {
            sets.push(vec!["--no-default-features", "--features", feature]);
        }
        if !package.features.is_empty() {
            sets.push(vec!["--all-features"]);
        }
        for set in sets {
            // Passed to clippy alone: RUSTFLAGS would build every dependency again.
            let clippy = Shell::cargo("clippy --package").args([&package.name]).args(set);
            clippy.args(["--", "-D", "warnings"]).run()?;
            checked += 1;
        }
    }
    Ok(Some(format!("{checked} sets")))
}
