use std::env;

use crate::Result;
use crate::ci::{Note, Options};
use crate::count::Count;
use crate::shell::{Shell, is_installed};
use crate::workspace::everything;

/// Where proptest's cases come from.
const SEED: &str = "PROPTEST_RNG_SEED";

/// With nextest where it is installed: it is faster, and a test that hangs is named. It is never installed
/// from here, for building it takes longer than it saves.
pub(crate) fn run(_: &Options) -> Result<Note> {
    counted(if is_installed("cargo-nextest") {
        "nextest run --no-fail-fast"
    } else {
        "test --no-fail-fast --lib --bins --tests"
    })
}

pub(crate) fn run_doc_tests(_: &Options) -> Result<Note> {
    counted("test --doc")
}

fn counted(arguments: &str) -> Result<Note> {
    let mut count = Count::default();
    // The same cases for the same commit, so that a change is not judged by what others left behind. Without it, and
    // that is how `cargo test` runs by itself, property tests look somewhere new each time.
    let seed = env::var_os(SEED).unwrap_or_else(|| "1".into());
    let result = Shell::cargo(arguments).env(SEED, seed).args(everything()?).watch(|line| count.see(line));
    result.map_err(|error| format!("{count}; {error}"))?;
    Ok(Some(count.to_string()))
}
