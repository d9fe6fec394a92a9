use std::ffi::OsString;
use std::fs;

use crate::Result;
use crate::release::archive::tar_gz;
use crate::release::stage::{Program, dist, time};

/// Builds the program and packs it with its manual pages, completions and documents.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    let program = Program::build(arguments)?;
    let name = program.archive_name()?;
    let path = dist()?.join(format!("{name}.tar.gz"));
    fs::write(&path, tar_gz(&name, program.archive()?, time()?)?)?;
    println!("{}", path.display());
    Ok(())
}
