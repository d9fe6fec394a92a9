use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::targets::{MISSING, select};
use crate::workspace;

/// A program with its own panic handler and no allocator. If a dependency linked the standard library, there would be two
/// panic handlers; if one allocated, there would be no allocator.
pub(crate) const MANIFEST: &str = "dev/no-std-link/Cargo.toml";

/// Targets without a standard library: one without 64-bit atomics, and two that cannot compare and swap at all.
const BARE_METAL: [&str; 3] = ["thumbv7m-none-eabi", "thumbv6m-none-eabi", "riscv32imc-unknown-none-elf"];

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
