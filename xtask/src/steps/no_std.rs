use std::path::Path;

use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace;

/// A program with its own panic handler and no allocator. If a dependency linked the standard library, there would be two
/// panic handlers; if one allocated, there would be no allocator.
pub(crate) const MANIFEST: &str = "no-std-link/Cargo.toml";

/// Targets without a standard library: one without 64-bit atomics, and two that cannot compare and swap at all.
const BARE_METAL: [&str; 3] = ["thumbv7m-none-eabi", "thumbv6m-none-eabi", "riscv32imc-unknown-none-elf"];

/// A compiler with the sources of `core`, from which it builds that of any target: Debian's `rustc-web` and `rust-web-src`.
const DEBIAN: [&str; 2] = ["/usr/bin/rustc", "/usr/lib/rustlib/src/rust/library/core"];

pub(crate) fn run(_: &Options) -> Result<Note> {
    let directory = workspace::target_directory("no-std-link")?;
    Shell::cargo("build --release --manifest-path").args([MANIFEST, "--target-dir"]).args([directory]).run()?;
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
    let skipped = if skipped.is_empty() {
        String::new()
    } else {
        format!("; skipped {}: install the target, or the packages rustc-web and rust-web-src", skipped.join(", "))
    };
    Ok(Some(built.join(", ") + &skipped))
}

/// Returns a command that builds the core for a target and accepts no warning, if that is possible on this machine.
fn build(target: &str) -> Result<Option<Shell>> {
    // `rustc` and not `build`, so that only this crate's warnings are errors.
    let cargo = |options: &str| Shell::cargo("rustc --quiet --package stagger-core").args(options.split_whitespace());
    let strict = |shell: Shell| shell.args(["--target", target, "--", "-D", "warnings"]);
    if is_installed(target)? {
        return Ok(Some(strict(cargo(""))));
    }
    if !DEBIAN.iter().all(|path| Path::new(path).exists()) {
        return Ok(None);
    }
    let directory = workspace::target_directory("bare-metal")?;
    let shell = strict(cargo("-Zbuild-std=core --target-dir").args([directory]));
    Ok(Some(shell.env("RUSTC", DEBIAN[0]).env("RUSTC_BOOTSTRAP", "1")))
}

fn is_installed(target: &str) -> Result<bool> {
    let libraries = Shell::new("rustc").args(["--print", "target-libdir", "--target", target]).output()?;
    Ok(Path::new(libraries.trim()).is_dir())
}
