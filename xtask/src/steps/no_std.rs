use std::path::Path;

use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace;

/// A program with its own panic handler. If anything that it is linked with brought the standard library
/// along, there would be two handlers, and if anything allocated, no allocator.
pub(crate) const MANIFEST: &str = "no-std-link/Cargo.toml";

/// Has no standard library to fall back on, nor 64-bit atomics.
const BARE_METAL: &str = "thumbv7m-none-eabi";

pub(crate) fn run(_: &Options) -> Result<Note> {
    let directory = workspace::target_directory("no-std-link")?;
    Shell::cargo("build --release --manifest-path").args([MANIFEST, "--target-dir"]).args([directory]).run()?;
    if !is_installed(BARE_METAL)? {
        return Ok(Some(format!("{BARE_METAL} is not installed and was not tried")));
    }
    Shell::cargo("build --package stagger-core --no-default-features --target").args([BARE_METAL]).run()?;
    Ok(Some(format!("host and {BARE_METAL}")))
}

fn is_installed(target: &str) -> Result<bool> {
    let libraries = Shell::new("rustc").args(["--print", "target-libdir", "--target", target]).output()?;
    Ok(Path::new(libraries.trim()).is_dir())
}
