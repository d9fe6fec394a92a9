//! `cargo xtask package`: builds the package of every published crate, checks what is in it, and uses the packages in a
//! program.

mod consumer;
mod contents;
mod metadata;

use std::ffi::OsString;
use std::fs;

use lexopt::{Arg, Parser};

use crate::Result;
use crate::crates::archive;
use crate::shell::Shell;
use crate::workspace::Workspace;

const USAGE: &str = "\
cargo xtask package [OPTIONS]

  --bless        rewrite the lists of files in docs/packages, and stop
  --release      refuse if anything is missing that a release needs
  --allow-dirty  package uncommitted changes
  --no-verify    do not build each package alone, which takes minutes; the program still builds the libraries
";

pub(crate) fn run(arguments: &[OsString]) -> Result {
    let (mut bless, mut options, mut purpose) = (false, Vec::new(), metadata::Purpose::Check);
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => {
                print!("{USAGE}");
                return Ok(());
            }
            Arg::Long("bless") => bless = true,
            Arg::Long("release") => purpose = metadata::Purpose::Release,
            Arg::Long(option @ ("allow-dirty" | "no-verify")) => options.push(format!("--{option}")),
            other => return Err(other.unexpected().into()),
        }
    }
    let workspace = Workspace::here()?;
    if bless {
        return contents::bless(&workspace);
    }
    metadata::check(&workspace, purpose)?;
    contents::check(&workspace)?;
    let names = workspace.published().flat_map(|package| ["--package", &package.name]);
    // Builds each package from its own files, and the packages that it needs.
    Shell::cargo("package --quiet").args(names).args(options).run()?;
    consumer::run(&workspace)?;
    print!("{}", table(&workspace)?);
    Ok(())
}

/// Returns the size of each package.
fn table(workspace: &Workspace) -> Result<String> {
    let mut lines = format!("{:<18}{:>7}{:>10}\n", "package", "files", "KiB");
    for package in workspace.published() {
        let length = fs::metadata(archive(workspace, package))?.len();
        let files = contents::files(package)?.len();
        lines += &format!("{:<18}{files:>7}{:>10.1}\n", package.name, length as f64 / 1024.0);
    }
    Ok(lines)
}
