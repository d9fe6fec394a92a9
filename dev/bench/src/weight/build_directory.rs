//! The directory in which dependants are built.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs, io};

use tempfile::TempDir;

use super::build::Build;
use super::dependant::Dependant;
use crate::lockfile;

/// A temporary directory, removed on drop.
#[derive(Debug)]
pub(super) struct BuildDirectory(TempDir);

impl BuildDirectory {
    pub(super) fn create() -> io::Result<Self> {
        tempfile::tempdir().map(Self)
    }

    /// Builds a program that depends on one crate, from scratch. The inner error is the reason why it does not build.
    ///
    /// The lock file is that of this workspace, so that the versions are those of the other sections, and cargo needs no
    /// network access.
    pub(super) fn build(&self, dependant: &Dependant) -> io::Result<Result<Build, String>> {
        let package = self.0.path().join("package");
        let target = self.0.path().join("target");
        fs::create_dir_all(package.join("src"))?;
        fs::write(package.join("Cargo.toml"), dependant.manifest())?;
        fs::write(package.join("Cargo.lock"), lockfile::TEXT)?;
        fs::write(package.join("src/main.rs"), dependant.program)?;
        let built = cargo_build(&package, &target);
        // A build must not reuse anything of the previous one.
        for directory in [package, target] {
            if directory.exists() {
                fs::remove_dir_all(directory)?;
            }
        }
        built
    }
}

fn cargo_build(package: &Path, target: &Path) -> io::Result<Result<Build, String>> {
    let start = Instant::now();
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--offline", "--quiet", "--message-format=json"])
        .current_dir(package)
        .env("CARGO_TARGET_DIR", target)
        .stdin(Stdio::null())
        .output()?;
    let seconds = start.elapsed().as_secs_f64();
    if output.status.success() {
        return Build::from_messages(&String::from_utf8_lossy(&output.stdout), seconds).map(Ok);
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let first = message.lines().find(|line| line.starts_with("error")).unwrap_or("cargo failed");
    Ok(Err(format!("does not build: {first}")))
}
