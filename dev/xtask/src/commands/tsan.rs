use std::env;
use std::ffi::OsString;

use crate::Result;
use crate::shell::Shell;

/// The only target: the sanitizer comes with its toolchain, and a target of its own keeps the flags from build scripts.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The standard library of a stable toolchain is built without the sanitizer, and the sanitizer is not a stable flag. What it
/// cannot see is the synchronization inside that library: the program uses it to join threads alone, which the sanitizer
/// recognizes in the system's library. No finding is suppressed.
const FLAGS: &str = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";
/// Calls per guard and thread, unless an argument says otherwise.
const CALLS: &str = "300000";

pub(crate) fn run(arguments: &[OsString]) -> Result {
    if !(cfg!(target_arch = "x86_64") && cfg!(target_os = "linux")) {
        return Err(format!("ThreadSanitizer is set up for {TARGET} only; run it there").into());
    }
    let calls = arguments.first().cloned().unwrap_or_else(|| CALLS.into());
    // A directory of its own, or other builds would begin anew.
    let directory = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), std::path::PathBuf::from);
    Shell::cargo("run --release --package stagger-core --example stress --target")
        .args([TARGET, "--target-dir"])
        .args([directory.join("tsan")])
        .args(["--"])
        .args([calls])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", FLAGS)
        .env("TSAN_OPTIONS", "halt_on_error=1")
        .run()
}
