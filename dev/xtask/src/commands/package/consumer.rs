//! A program that has nothing but the packages: what a user gets who depends on a release.

use std::fs;
use std::path::Path;

use crate::Result;
use crate::crates;
use crate::shell::Shell;
use crate::workspace::{self, Workspace, root};

/// The program, which names the crates by version, as users do.
const PROGRAM: &str = "dev/xtask/consumer";

/// Unpacks the packages into a directory outside the workspace, and builds and runs the program there.
pub(super) fn run(workspace: &Workspace) -> Result {
    let directory = std::env::temp_dir().join(format!("stagger-consumer-{}", std::process::id()));
    let result = run_in(&directory, workspace);
    fs::remove_dir_all(&directory)?;
    result
}

fn run_in(directory: &Path, workspace: &Workspace) -> Result {
    fs::create_dir_all(directory.join("src"))?;
    fs::copy(root().join(PROGRAM).join("src/main.rs"), directory.join("src/main.rs"))?;
    // The versions that the tests have used.
    fs::copy(root().join("Cargo.lock"), directory.join("Cargo.lock"))?;
    let manifest = fs::read_to_string(root().join(PROGRAM).join("Cargo.toml"))?;
    crates::unpack(workspace, directory)?;
    fs::write(directory.join("Cargo.toml"), manifest + &crates::patches(workspace, "", |_| true))?;
    let target = workspace::target_directory("consumer")?;
    Shell::cargo("run --quiet --target-dir").args([target]).directory(directory).run()
}
