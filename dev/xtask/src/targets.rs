//! Builds for targets whose libraries rustup may not have installed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::ci::{Note, Options};
use crate::error::Result;
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

/// A program with its own panic handler and no allocator. If a dependency linked the standard library, there would be two
/// panic handlers; if one allocated, there would be no allocator.
pub(crate) const LINK_MANIFEST: &str = "dev/no-std-link/Cargo.toml";

/// Targets without a standard library: one without 64-bit atomics, and two that cannot compare and swap at all.
const BARE_METAL: [&str; 3] = ["thumbv7m-none-eabi", "thumbv6m-none-eabi", "riscv32imc-unknown-none-elf"];

pub(crate) fn no_std(_: &Options) -> Result<Note> {
    let directory = workspace::target_directory("no-std-link")?;
    Shell::cargo("build --release --manifest-path").args([LINK_MANIFEST, "--target-dir"]).args([directory]).run()?;
    let (mut built, mut skipped) = (vec!["host"], Vec::new());
    for target in BARE_METAL {
        match build(target)? {
            Some(shell) => {
                shell.run()?;
                built.push(target);
            }
            None => skipped.push(target),
        }
    }
    let skipped =
        if skipped.is_empty() { String::new() } else { format!("; skipped {}: {MISSING}", skipped.join(", ")) };
    Ok(Some(built.join(", ") + &skipped))
}

/// Returns a command that builds the core for a target and accepts no warning, if that is possible on this machine.
fn build(target: &str) -> Result<Option<Shell>> {
    // `rustc` and not `build`, so that only this crate's warnings are errors.
    let shell = select(Shell::cargo("rustc --quiet --package stagger-core"), target, "core", "bare-metal")?;
    Ok(shell.map(|shell| shell.args(["--", "-D", "warnings"])))
}

const WASM: &str = "wasm32-unknown-unknown";

/// The program, and the script that runs it.
const PROGRAM: &str = "dev/xtask/wasm";

/// Builds a program for WebAssembly without a host, and runs it in Node: a seed, and calls with a timer of the host. There, the
/// standard library panics if it is asked for the time or to sleep.
pub(crate) fn wasm(arguments: &[OsString]) -> Result {
    if !arguments.is_empty() {
        return Err("takes no arguments".into());
    }
    let cargo = Shell::cargo("build --quiet --locked --manifest-path").args([format!("{PROGRAM}/Cargo.toml")]);
    // Only a compiler of rustup finds it by itself.
    let cargo = cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", rust_lld()?);
    let cargo = select(cargo, WASM, "std,panic_abort", "wasm")?;
    cargo.ok_or_else(|| format!("{WASM} cannot be built: {MISSING}"))?.run()?;
    let module = workspace::target_directory("wasm")?.join(WASM).join("debug/stagger-wasm.wasm");
    Shell::new("node").args([format!("{PROGRAM}/run.mjs")]).args([module]).run()?;
    println!("seeds and calls work on {WASM}");
    Ok(())
}
