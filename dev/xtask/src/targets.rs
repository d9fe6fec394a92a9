//! Builds for targets without an operating system: `stagger-core` without the standard library, and WebAssembly.

use std::ffi::OsString;
use std::path::Path;

use crate::ci::{Note, Options};
use crate::shell::{Result, Shell, no_arguments};
use crate::workspace::target_directory;

/// A compiler with the sources of the standard library, from which it builds that of any target: Debian's `rustc-web`
/// and `rust-web-src`.
const DEBIAN: [&str; 2] = ["/usr/bin/rustc", "/usr/lib/rustlib/src/rust/library/core"];

/// What is missing if [`select`] returns `None`.
const MISSING: &str = "install the target, or the packages rustc-web and rust-web-src";

/// Lets a command of cargo build for a target. If rustup has not installed it, the crates of `library`, such as `core`,
/// are built from source in the target directory named `directory`. Returns `None` if neither is possible on this
/// machine.
fn select(cargo: Shell, target: &str, library: &str, directory: &str) -> Result<Option<Shell>> {
    let cargo = cargo.args(["--target", target, "--target-dir"]).args([target_directory(directory)?]);
    let libraries = Shell::new("rustc").args(["--print", "target-libdir", "--target", target]).output()?;
    if Path::new(libraries.trim()).is_dir() {
        return Ok(Some(cargo));
    }
    if !DEBIAN.iter().all(|path| Path::new(path).exists()) {
        return Ok(None);
    }
    let cargo = cargo.args([format!("-Zbuild-std={library}")]);
    Ok(Some(cargo.env("RUSTC", DEBIAN[0]).env("RUSTC_BOOTSTRAP", "1")))
}

/// A program with its own panic handler and no allocator. If a dependency linked the standard library, there would be
/// two panic handlers; if one allocated, there would be no allocator.
pub(crate) const LINK_MANIFEST: &str = "dev/no-std-link/Cargo.toml";

/// Targets without a standard library: one without 64-bit atomics, and two that cannot compare and swap at all.
const BARE_METAL: [&str; 3] = ["thumbv7m-none-eabi", "thumbv6m-none-eabi", "riscv32imc-unknown-none-elf"];

/// Links the core into a program without the standard library, and builds it for small targets as far as this machine
/// can.
pub(crate) fn no_std(_: &Options) -> Result<Note> {
    let directory = target_directory("no-std-link")?;
    Shell::cargo("build --release --manifest-path").args([LINK_MANIFEST, "--target-dir"]).args([directory]).run()?;
    let mut notes = vec!["host".to_owned()];
    for target in BARE_METAL {
        for features in ["", "admission,hedge"] {
            // `rustc` and not `build`, so that only this crate's warnings are errors.
            let cargo = Shell::cargo("rustc --quiet --package stagger-core --features").args([features]);
            if let Some(cargo) = select(cargo, target, "core", "bare-metal")? {
                cargo.args(["--", "-D", "warnings"]).run()?;
                notes.push(format!("{target} {features}").trim_end().to_owned());
            } else {
                notes.push(format!("skipped {target} ({MISSING})"));
            }
        }
    }
    Ok(Some(notes.join(", ")))
}

const WASM: &str = "wasm32-unknown-unknown";

/// The program, and the script that runs it.
const PROGRAM: &str = "dev/xtask/wasm";

/// Builds a program for WebAssembly without a host, and runs it in Node: a seed, and calls with a timer of the host.
/// There, the standard library panics if it is asked for the time or to sleep.
pub(crate) fn wasm(arguments: &[OsString]) -> Result {
    no_arguments(arguments)?;
    // rustup installs the linker with every toolchain, but only a compiler of rustup finds it by itself.
    let libraries = Shell::new("rustc").args(["--print", "target-libdir"]).output()?;
    let linker = Path::new(libraries.trim()).with_file_name("bin").join("rust-lld");
    let cargo = Shell::cargo("build --quiet --locked --manifest-path").args([format!("{PROGRAM}/Cargo.toml")]);
    let cargo = cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    let cargo = select(cargo, WASM, "std,panic_abort", "wasm")?;
    cargo.ok_or_else(|| format!("{WASM} cannot be built: {MISSING}"))?.run()?;
    let module = target_directory("wasm")?.join(WASM).join("debug/stagger-wasm.wasm");
    Shell::new("node").args([format!("{PROGRAM}/run.mjs")]).args([module]).run()?;
    println!("seeds and calls work on {WASM}");
    Ok(())
}
