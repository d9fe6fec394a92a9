//! Tools that are cargo sub-commands of their own.

use crate::Result;
use crate::shell::{Shell, is_installed};

/// `cargo NAME ARGUMENTS`, after `cargo-NAME` has been installed if it is missing.
pub(crate) fn cargo(name: &str, arguments: &str) -> Result<Shell> {
    let tool = format!("cargo-{name}");
    if !is_installed(&tool) {
        eprintln!("{tool} is missing and will be installed; this takes some minutes, once");
        Shell::cargo("install --locked").args([&tool]).run()?;
    }
    Ok(Shell::cargo(name).args(arguments.split_ascii_whitespace()))
}
