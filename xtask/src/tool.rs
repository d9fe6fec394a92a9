//! Tools that are cargo subcommands of their own.

use crate::Result;
use crate::shell::{Shell, is_installed};

/// Creates the command `cargo NAME ARGUMENTS`, and installs `cargo-NAME` if it is missing.
pub(crate) fn cargo(name: &str, arguments: &str) -> Result<Shell> {
    let tool = format!("cargo-{name}");
    if !is_installed(&tool) {
        eprintln!("installing {tool}, which takes some minutes the first time");
        Shell::cargo("install --locked").args([&tool]).run()?;
    }
    Ok(Shell::cargo(name).args(arguments.split_ascii_whitespace()))
}
