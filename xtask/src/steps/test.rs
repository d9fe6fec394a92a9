use crate::Result;
use crate::ci::{Note, Options};
use crate::count::Count;
use crate::shell::{Shell, is_installed};
use crate::workspace::everything;

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
    let result = Shell::cargo(arguments).args(everything()?).watch(|line| count.see(line));
    result.map_err(|error| format!("{count}; {error}"))?;
    Ok(Some(count.to_string()))
}
