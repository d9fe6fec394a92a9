use std::ffi::OsString;

use crate::Result;
use crate::shell::Shell;
use crate::targets::{MISSING, rust_lld, select};
use crate::workspace;

const TARGET: &str = "wasm32-unknown-unknown";

/// The program, and the script that runs it.
const PROGRAM: &str = "dev/xtask/wasm";

/// Builds a program for WebAssembly without a host, and runs it in Node: a seed, and calls with a timer of the host. There, the
/// standard library panics if it is asked for the time or to sleep.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    if !arguments.is_empty() {
        return Err("takes no arguments".into());
    }
    let cargo = Shell::cargo("build --quiet --locked --manifest-path").args([format!("{PROGRAM}/Cargo.toml")]);
    // Only a compiler of rustup finds it by itself.
    let cargo = cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", rust_lld()?);
    let cargo = select(cargo, TARGET, "std,panic_abort", "wasm")?;
    cargo.ok_or_else(|| format!("{TARGET} cannot be built: {MISSING}"))?.run()?;
    let module = workspace::target_directory("wasm")?.join(TARGET).join("debug/stagger-wasm.wasm");
    Shell::new("node").args([format!("{PROGRAM}/run.mjs")]).args([module]).run()?;
    println!("seeds and calls work on {TARGET}");
    Ok(())
}
