use std::ffi::OsString;

use crate::Result;
use crate::shell::Shell;
use crate::workspace;

/// Runs the tests with `threads` in their names under ThreadSanitizer: every guard is used by several threads at once.
///
/// The standard library is built with it, too, since the sanitizer does not see the locks of the one that is installed. Both
/// are unstable features, which `RUSTC_BOOTSTRAP` permits on a stable compiler.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    let version = Shell::new("rustc").args(["--version", "--verbose"]).output()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("`rustc` does not say its host")?;
    let directory = workspace::target_directory("tsan")?;
    Shell::cargo(
        "test -Zbuild-std --package stagger-core --package stagger --features stagger/tokio --test laws --test suite",
    )
    .args(["--target", host, "--target-dir"])
    .args([&directory])
    .args(arguments)
    .args(["--", "threads"])
    .env("RUSTC_BOOTSTRAP", "1")
    .env("RUSTFLAGS", "-Zsanitizer=thread")
    .run()
}
