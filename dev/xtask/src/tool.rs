//! The steps that run nothing, and the tools that cargo has as subcommands of their own: format, clippy, combinations
//! of features, licenses, and the last release.

use std::env;
use std::ffi::OsString;

use crate::ci::{Note, Options};
use crate::shell::{Result, Shell, is_installed};
use crate::targets::LINK_MANIFEST;
use crate::testing::FUZZ_MANIFEST;
use crate::workspace::{Workspace, everything, target_directory};

/// Creates the command `cargo NAME ARGUMENTS`, and installs `cargo-NAME` if it is missing.
pub(crate) fn cargo(name: &str, arguments: &str) -> Result<Shell> {
    let tool = format!("cargo-{name}");
    if !is_installed(&tool) {
        eprintln!("installing {tool}, which takes some minutes the first time");
        Shell::cargo("install --locked").args([&tool]).run()?;
    }
    Ok(Shell::cargo(name).args(arguments.split_ascii_whitespace()))
}

/// Creates the command `cargo NAME` of exactly this version, and installs it below the target directory if it is
/// missing there: what is published must not depend on the newest version of a tool. `options` are further ones for the
/// installation.
pub(crate) fn pinned(name: &str, version: &str, options: &[&str]) -> Result<Shell> {
    let tool = format!("cargo-{name}");
    let directory = target_directory("tools")?.join(format!("{tool}-{version}"));
    let program = directory.join("bin").join(&tool).with_extension(env::consts::EXE_EXTENSION);
    if !program.is_file() {
        eprintln!("installing {tool} {version}, which takes some minutes the first time");
        let install = Shell::cargo("install --locked --root").args([&directory]);
        install.args(["--version", version, &tool]).args(options).run()?;
    }
    Ok(Shell::new(program))
}

/// Checks everything but advisories: their database changes independently of this repository.
pub(crate) fn deny(arguments: &[OsString]) -> Result {
    cargo("deny", "--all-features check")?.args(arguments).args(["bans", "licenses", "sources"]).run()
}

/// Compares the published libraries with the last release, or with the baseline that the arguments name.
pub(crate) fn semver(arguments: &[OsString]) -> Result {
    let mut shell = cargo("semver-checks", "")?;
    for library in Workspace::here()?.libraries() {
        shell = shell.args(["--package", &library.name]);
    }
    if !arguments.iter().any(|argument| argument.as_encoded_bytes().starts_with(b"--baseline")) {
        // The newest tag `v1.2.3` among the ancestors of the current commit.
        let tag = Shell::new("git").args(["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]).output();
        let none = "no release is tagged; pass the revision to compare with: --baseline-rev REVISION";
        shell = shell.args(["--baseline-rev", tag.map_err(|_| none)?.trim()]);
    }
    shell.args(arguments).run()
}

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
