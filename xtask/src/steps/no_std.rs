use std::path::Path;

use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace;

/// A program with its own panic handler and no allocator. If a dependency linked the standard library, there would be two
/// panic handlers; if one allocated, there would be no allocator.
pub(crate) const MANIFEST: &str = "no-std-link/Cargo.toml";

/// A target without a standard library and without 64-bit atomics.
const BARE_METAL: &str = "thumbv7m-none-eabi";

pub(crate) fn run(_: &Options) -> Result<Note> {
    let directory = workspace::target_directory("no-std-link")?;
    Shell::cargo("build --release --manifest-path").args([MANIFEST, "--target-dir"]).args([directory]).run()?;
    if !is_installed(BARE_METAL)? {
        return Ok(Some(format!("host; {BARE_METAL} is not installed and was skipped")));
    }
    Shell::cargo("build --package stagger-core --no-default-features --target").args([BARE_METAL]).run()?;
    Ok(Some(format!("host and {BARE_METAL}")))
}

fn is_installed(target: &str) -> Result<bool> {
    let libraries = Shell::new("rustc").args(["--print", "target-libdir", "--target", target]).output()?;
    Ok(Path::new(libraries.trim()).is_dir())
}
