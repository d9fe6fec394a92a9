//! Where dependants are built.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs, io};

use tempfile::TempDir;

use super::build::Build;
use super::dependant::Dependant;
use crate::lockfile;

/// A temporary directory, removed at the end.
#[derive(Debug)]
pub(super) struct Workshop(TempDir);

impl Workshop {
    pub(super) fn open() -> io::Result<Self> {
        tempfile::tempdir().map(Self)
    }

    /// Builds a program that depends on one crate, from nothing; the inner error says why it does not build.
    ///
    /// It starts from this workspace's lock file, so that the versions are those that are compared elsewhere and
    /// cargo needs no network to find them.
    pub(super) fn build(&self, dependant: &Dependant) -> io::Result<Result<Build, String>> {
        let package = self.0.path().join("package");
        let target = self.0.path().join("target");
        fs::create_dir_all(package.join("src"))?;
        fs::write(package.join("Cargo.toml"), dependant.manifest())?;
        fs::write(package.join("Cargo.lock"), lockfile::TEXT)?;
        fs::write(package.join("src/main.rs"), dependant.program)?;
        let built = cargo_build(&package, &target);
        // Nothing of one build may be left for the next.
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
        return Build::of(&String::from_utf8_lossy(&output.stdout), seconds).map(Ok);
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let first = message.lines().find(|line| line.starts_with("error")).unwrap_or("cargo failed");
    Ok(Err(format!("does not build: {first}")))
}
