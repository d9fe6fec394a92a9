use std::ffi::OsString;

use crate::shell::Shell;
use crate::workspace::Workspace;
use crate::{Result, tool};

/// Compares the published libraries with the last release, or with the baseline that the arguments name.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    let workspace = Workspace::here()?;
    let libraries = workspace.published().filter(|package| package.is_library());
    let packages = libraries.flat_map(|package| ["--package", &package.name]);
    let mut shell = tool::cargo("semver-checks", "")?.args(packages);
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
