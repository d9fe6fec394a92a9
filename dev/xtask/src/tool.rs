//! Tools that are cargo subcommands of their own.

use std::env;

use crate::shell::{Shell, is_installed};
use crate::{Result, workspace};

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
