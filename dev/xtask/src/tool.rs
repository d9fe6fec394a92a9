//! Tools that are cargo subcommands of their own.

use std::env;
use std::ffi::OsString;

use crate::error::Result;
use crate::shell::{Shell, is_installed};
use crate::workspace;
use crate::workspace::Workspace;

/// Creates the command `cargo NAME ARGUMENTS`, and installs `cargo-NAME` if it is missing.
pub(crate) fn cargo(name: &str, arguments: &str) -> Result<Shell> {
    let tool = format!("cargo-{name}");
    if !is_installed(&tool) {
        eprintln!("installing {tool}, which takes some minutes the first time");
        Shell::cargo("install --locked").args([&tool]).run()?;
    }
    Ok(Shell::cargo(name).args(arguments.split_ascii_whitespace()))
}

/// Creates the command `cargo NAME` of exactly this version, and installs it below the target directory if it is missing
/// there: what is published must not depend on the newest version of a tool.
pub(crate) fn pinned(name: &str, version: &str) -> Result<Shell> {
    let tool = format!("cargo-{name}");
    let directory = workspace::target_directory("tools")?.join(format!("{tool}-{version}"));
    let program = directory.join("bin").join(&tool).with_extension(env::consts::EXE_EXTENSION);
    if !program.is_file() {
        eprintln!("installing {tool} {version}, which takes some minutes the first time");
        let install = Shell::cargo("install --locked --root").args([&directory]);
        install.args(["--version", version, &tool]).run()?;
    }
    // Without cargo in between, which passes the name of the subcommand on.
    Ok(Shell::new(program).args([name]))
}

/// Checks everything but advisories: their database changes independently of this repository.
pub(crate) fn deny(arguments: &[OsString]) -> Result {
    cargo("deny", "--all-features check")?.args(arguments).args(["bans", "licenses", "sources"]).run()
}

/// Compares the published libraries with the last release, or with the baseline that the arguments name.
pub(crate) fn semver(arguments: &[OsString]) -> Result {
    let workspace = Workspace::here()?;
    let libraries = workspace.published().filter(|package| package.is_library());
    let packages = libraries.flat_map(|package| ["--package", &package.name]);
    let mut shell = cargo("semver-checks", "")?.args(packages);
    if !names_baseline(arguments) {
        shell = shell.args(["--baseline-rev".to_owned(), last_release()?]);
    }
    shell.args(arguments).run()
}

fn names_baseline(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| argument.as_encoded_bytes().starts_with(b"--baseline"))
}

/// Returns the newest tag `v1.2.3` among the ancestors of the current commit.
fn last_release() -> Result<String> {
    let tag = Shell::new("git").args(["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]).output();
    let tag = tag.map_err(|_| "no release is tagged; pass the revision to compare with: --baseline-rev REVISION")?;
    Ok(tag.trim().to_owned())
}
