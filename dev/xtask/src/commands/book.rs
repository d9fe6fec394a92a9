use std::ffi::OsString;

use crate::Result;
use crate::shell::Shell;
use crate::workspace::Workspace;

/// Runs the test that builds the book, which stays in the target directory.
pub(crate) fn run(_: &[OsString]) -> Result {
    Shell::cargo("test --package stagger-guide --test suite book").run()?;
    println!("{}", Workspace::here()?.target_directory.join("book/index.html").display());
    Ok(())
}
