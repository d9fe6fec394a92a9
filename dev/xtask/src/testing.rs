//! The steps that run tests, examples, fuzz targets and models, and the book's command.

use core::fmt;
use core::time::Duration;
use std::env;
use std::ffi::OsString;

use crate::ci::{Note, Options};
use crate::error::Result;
use crate::shell::{Shell, is_installed};
use crate::tool;
use crate::workspace::{self, Workspace, everything};

/// The variable with the seed of proptest's cases.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Runs the tests with nextest if it is installed: it is faster, and reports a test that hangs. It is not installed from
/// here, because building it takes longer than it saves.
pub(crate) fn unit_and_integration(_: &Options) -> Result<Note> {
    counted(if is_installed("cargo-nextest") {
        "nextest run --no-fail-fast"
    } else {
        "test --no-fail-fast --lib --bins --tests"
    })
}

pub(crate) fn doc_tests(_: &Options) -> Result<Note> {
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Count {
    /// Adds the counts of a line of `cargo nextest` or `cargo test`, if the line is a summary.
    pub(crate) fn add_line(&mut self, line: &str) {
        let line = without_color(line);
        // At the first column only: nextest indents the output of a failed test, which has a result line of its own.
        let sum = if let Some(sum) = line.strip_prefix("test result: ") {
            sum
        } else if line.trim_start().starts_with("Summary [")
            && let Some((_, sum)) = line.split_once(" run: ")
        {
            sum
        } else {
            return;
        };
        for part in without_brackets(sum).split([',', ';', '.']) {
            let Some((number, what)) = part.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" | "timed out" | "exec failed" => self.failed += number,
                "skipped" | "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// Removes the remarks of nextest, as in `3 passed (1 slow, 1 flaky), 1 failed`.
fn without_brackets(text: &str) -> String {
    let mut depth = 0_u32;
    text.chars()
        .filter(|character| {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
        .collect::<String>()
        .replace(" ,", ",")
}

/// Removes the escape sequences for color: `ESC [`, parameters, `m`.
fn without_color(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain += part.split_once('m').map_or(part, |(_, rest)| rest);
    }
    plain
}

/// An example that takes longer is not useful to a reader.
const EXAMPLE_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn examples(_: &Options) -> Result<Note> {
    let workspace = Workspace::here()?;
    // All at once and with the features of the step `test`, which has built their dependencies.
    Shell::cargo("build --examples").args(everything()?).run()?;
    let directory = workspace.target_directory.join("debug/examples");
    let mut ran = 0;
    for package in &workspace.packages {
        for example in package.targets("example") {
            Shell::new(directory.join(example)).run_within(EXAMPLE_LIMIT)?;
            ran += 1;
        }
    }
    Ok(Some(format!("{ran} ran")))
}

/// Runs the tests with `loom` in their names, in the packages that depend on loom.
///
/// Other tests are left out: under `cfg(loom)` they would use loom's atomics outside a model, which panics.
pub(crate) fn loom(_: &Options) -> Result<Note> {
    let workspace = Workspace::here()?;
    let tested = workspace.packages.iter().filter(|package| package.dependencies.iter().any(|name| name == "loom"));
    let names: Vec<_> = tested.map(|package| package.name.as_str()).collect();
    if names.is_empty() {
        return Ok(Some("no package depends on loom".to_owned()));
    }
    let directory = workspace::target_directory("loom")?;
    for name in &names {
        // Optimized, because a model runs thousands of times.
        Shell::cargo("test --release --lib --tests loom --package")
            .args([name, "--target-dir"])
            .args([&directory])
            .env("RUSTFLAGS", "--cfg loom")
            .run()?;
    }
    Ok(Some(names.join(", ")))
}

pub(crate) const FUZZ_MANIFEST: &str = "dev/fuzz/Cargo.toml";

/// The workspace has no unsafe code for a sanitizer to check, and without one the targets run several times as fast.
const SANITIZER: &str = "--sanitizer=none";

pub(crate) fn fuzz(options: &Options) -> Result<Note> {
    let fuzz = Workspace::at(FUZZ_MANIFEST)?;
    let targets: Vec<_> = fuzz.packages.iter().flat_map(|package| package.targets("bin")).collect();
    cargo_fuzz("build", &[])?.run()?;
    let time = format!("-max_total_time={}", options.fuzz_seconds);
    for target in &targets {
        let limits = [target, "--", &time, "-timeout=25", "-verbosity=0", "-print_final_stats=1"];
        let dictionary = workspace::root().join(format!("dev/fuzz/dictionaries/{target}.dict"));
        let dictionary = dictionary.exists().then(|| format!("-dict={}", dictionary.display()));
        cargo_fuzz("run", &limits)?.args(dictionary).run()?;
    }
    Ok(Some(format!("{} targets, {} s each", targets.len(), options.fuzz_seconds)))
}

fn cargo_fuzz(command: &str, arguments: &[&str]) -> Result<Shell> {
    let directory = workspace::target_directory("fuzz")?;
    let shell = tool::cargo("fuzz", command)?
        .args(["--fuzz-dir", "dev/fuzz", SANITIZER, "--target-dir"])
        .args([directory])
        .args(arguments);
    // cargo-fuzz needs unstable compiler flags, which a stable compiler accepts with this variable.
    Ok(shell.env("RUSTC_BOOTSTRAP", "1"))
}

/// Runs the test that builds the book, which stays in the target directory.
pub(crate) fn book(_: &[OsString]) -> Result {
    Shell::cargo("test --package stagger-guide --test suite book").run()?;
    println!("{}", Workspace::here()?.target_directory.join("book/index.html").display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(lines: &[&str]) -> (u64, u64, u64) {
        let mut count = Count::default();
        lines.iter().for_each(|line| count.add_line(line));
        (count.passed, count.failed, count.skipped)
    }

    #[test]
    fn results_of_several_test_binaries_add_up() {
        let lines = [
            "test result: ok. 26 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.77s\n",
            "test result: FAILED. 17 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 10.02s\n",
        ];
        assert_eq!(count(&lines), (43, 1, 2));
    }

    #[test]
    fn nextest_summaries_are_read_in_all_forms() {
        for (line, want) in [
            ("     Summary [   0.771s] 26 tests run: 26 passed, 2 skipped", (26, 0, 2)),
            ("     Summary [   1.000s] 1 test run: 1 passed, 0 skipped", (1, 0, 0)),
            ("  Summary [ 2s] 5/26 tests run: 2 passed (1 slow, 1 flaky), 1 failed, 2 timed out, 0 skipped", (2, 3, 0)),
            (
                "\u{1b}[32;1m     Summary\u{1b}[0m [   0.7s] \u{1b}[1m3\u{1b}[0m tests run: \u{1b}[1m3\u{1b}[0m \
                 \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m1\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m",
                (3, 0, 1),
            ),
        ] {
            assert_eq!(count(&[line]), want, "{line}");
        }
    }

    #[test]
    fn other_lines_are_ignored() {
        assert_eq!(count(&["test passes ... ok", "3 passed, 1 failed", "Summary [", ""]), (0, 0, 0));
    }

    #[test]
    fn the_output_of_a_failed_test_is_not_counted() {
        let lines = [
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 17 filtered out; finished in 0.09s",
            "     Summary [   1.151s] 3 tests run: 2 passed, 1 failed, 0 skipped",
        ];
        assert_eq!(count(&lines), (2, 1, 0));
    }
}
