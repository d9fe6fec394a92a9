//! Builds for targets whose libraries rustup may not have installed.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::shell::Shell;
use crate::workspace;

/// A compiler with the sources of the standard library, from which it builds that of any target: Debian's `rustc-web` and
/// `rust-web-src`.
const DEBIAN: [&str; 2] = ["/usr/bin/rustc", "/usr/lib/rustlib/src/rust/library/core"];

/// What is missing if [`select`] returns `None`.
pub(crate) const MISSING: &str = "install the target, or the packages rustc-web and rust-web-src";

/// Lets a command of cargo build for a target. If the target is not installed, the crates of `library`, such as `core`, are built
/// from source in the target directory named `directory`. Returns `None` if neither is possible on this machine.
pub(crate) fn select(cargo: Shell, target: &str, library: &str, directory: &str) -> Result<Option<Shell>> {
    let cargo = cargo.args(["--target", target, "--target-dir"]).args([workspace::target_directory(directory)?]);
    if is_installed(target)? {
        return Ok(Some(cargo));
    }
    if !DEBIAN.iter().all(|path| Path::new(path).exists()) {
        return Ok(None);
    }
    let cargo = cargo.args([format!("-Zbuild-std={library}")]);
    Ok(Some(cargo.env("RUSTC", DEBIAN[0]).env("RUSTC_BOOTSTRAP", "1")))
}

/// Returns the path of the linker for targets without a C compiler, which rustup installs with every toolchain.
pub(crate) fn rust_lld() -> Result<PathBuf> {
    let libraries = Shell::new("rustc").args(["--print", "target-libdir"]).output()?;
    Ok(Path::new(libraries.trim()).with_file_name("bin").join("rust-lld"))
}

fn is_installed(target: &str) -> Result<bool> {
    let libraries = Shell::new("rustc").args(["--print", "target-libdir", "--target", target]).output()?;
    Ok(Path::new(libraries.trim()).is_dir())
}
