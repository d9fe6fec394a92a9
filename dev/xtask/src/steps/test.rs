use std::env;

use crate::Result;
use crate::ci::{Note, Options};
use crate::count::Count;
use crate::shell::{Shell, is_installed};
use crate::workspace::everything;

/// The variable with the seed of proptest's cases.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Runs the tests with nextest if it is installed: it is faster, and reports a test that hangs. It is not installed from
/// here, because building it takes longer than it saves.
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
    // A fixed seed, so that a change does not fail on cases that an earlier commit would also have failed on. A plain
    // `cargo test` draws new cases on each run.
    let seed = env::var_os(SEED).unwrap_or_else(|| "1".into());
    let result = Shell::cargo(arguments).env(SEED, seed).args(everything()?).watch(|line| count.add_line(line));
    result.map_err(|error| format!("{count}; {error}"))?;
    Ok(Some(count.to_string()))
}
