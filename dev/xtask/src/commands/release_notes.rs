use std::ffi::OsString;
use std::fs;

use crate::Result;
use crate::commands::release_check::version;
use crate::release::changelog::Changelog;
use crate::workspace::root;

/// Prints the section of a version in the changelog.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    let changelog = fs::read_to_string(root().join("CHANGELOG.md"))?;
    print!("{}", Changelog::parse(&changelog).notes(&version(arguments)?)?);
    Ok(())
}
