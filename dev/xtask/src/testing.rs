//! The steps that run something: tests, examples, fuzz targets and models.

use core::fmt;
use core::time::Duration;
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::thread;

use crate::ci::{Note, Options};
use crate::files::root;
use crate::shell::{Result, Shell, is_installed};
use crate::tool;
use crate::workspace::{Workspace, everything, target_directory};

/// The variable with the seed of proptest's cases.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Runs the tests with nextest if it is installed: it is faster, and reports a test that hangs. It is not installed
/// from here, because building it takes longer than it saves. Two tests run on each core, because many wait for servers
/// and processes.
pub(crate) fn unit_and_integration(_: &Options) -> Result<Note> {
    if is_installed("cargo-nextest") {
        let threads = 2 * thread::available_parallelism()?.get();
        counted(&format!("nextest run --no-fail-fast --test-threads {threads}"))
    } else {
        counted("test --no-fail-fast --lib --bins --tests")
    }
}

pub(crate) fn doc_tests(_: &Options) -> Result<Note> {
    counted("test --doc")
}

fn counted(arguments: &str) -> Result<Note> {
    let mut count = Count::default();
    // A fixed seed, so that a change does not fail on cases that an earlier commit would also have failed on. A plain
    // `cargo test` draws new cases on each run.
    let seed = env::var_os(SEED).unwrap_or("1".into());
    // The counts are read from the output, and colors would be in between.
    let tests = Shell::cargo(arguments).args(everything()?).env(SEED, seed).env("CARGO_TERM_COLOR", "never");
    // A test whose programs are missing fails here.
    let tests = tests.env("STAGGER_TEST_ALL", "1");
    let result = tests.watch(|line| count.add_line(line));
    result.map_err(|error| format!("{count}; {error}"))?;
    Ok(Some(count.to_string()))
}

/// Passed and failed tests, from the output of the test runners.
#[derive(Debug, Default)]
struct Count {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Count {
    /// Adds the counts of a line of `cargo nextest` or `cargo test`, if the line is a summary.
    fn add_line(&mut self, line: &str) {
        // At the first column only: nextest indents the output of a failed test, which has a result line of its own.
        if !line.starts_with("test result: ") && !line.trim_start().starts_with("Summary [") {
            return;
        }
        let words: Vec<_> = line.split([' ', ',', ';', '(']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].parse::<u64>() else { continue };
            match pair[1].trim() {
                "passed" => self.passed += number,
                // Of nextest: "2 timed out", "1 exec failed".
                "failed" | "timed" | "exec" => self.failed += number,
                "skipped" | "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
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
    let directory = target_directory("loom")?;
    let mut tested = Vec::new();
    for package in Workspace::here()?.packages {
        if package.dependencies.iter().any(|name| name == "loom") {
            // Optimized, because a model runs thousands of times.
            let test = Shell::cargo("test --release --lib --tests loom --package").args([&package.name]);
            test.args(["--target-dir"]).args([&directory]).env("RUSTFLAGS", "--cfg loom").run()?;
            tested.push(package.name);
        }
    }
    Ok(Some(tested.join(", ")))
}

pub(crate) const FUZZ_MANIFEST: &str = "dev/fuzz/Cargo.toml";

/// The workspace has no unsafe code for a sanitizer to check, and without one the targets run several times as fast.
const SANITIZER: &str = "--sanitizer=none";

pub(crate) fn fuzz(options: &Options) -> Result<Note> {
    let fuzz = Workspace::at(FUZZ_MANIFEST)?;
    let targets: Vec<_> = fuzz.packages.iter().flat_map(|package| package.targets("bin")).collect();
    cargo_fuzz("build")?.run()?;
    let time = format!("-max_total_time={}", options.fuzz_seconds);
    for target in &targets {
        let limits = [target, "--", &time, "-timeout=25", "-verbosity=0", "-print_final_stats=1"];
        let mut run = cargo_fuzz("run")?.args(limits);
        let dictionary = root().join(format!("dev/fuzz/dictionaries/{target}.dict"));
        if dictionary.exists() {
            run = run.args([format!("-dict={}", dictionary.display())]);
        }
        run.run()?;
    }
    Ok(Some(format!("{} targets, {} s each", targets.len(), options.fuzz_seconds)))
}

fn cargo_fuzz(command: &str) -> Result<Shell> {
    let shell = tool::cargo("fuzz", command)?.args(["--fuzz-dir", "dev/fuzz", SANITIZER, "--target-dir"]);
    // cargo-fuzz needs unstable compiler flags, which a stable compiler accepts with this variable.
    Ok(shell.args([target_directory("fuzz")?]).env("RUSTC_BOOTSTRAP", "1"))
}

/// Runs the test that builds the book, which stays in the target directory.
pub(crate) fn book(_: &[OsString]) -> Result {
    Shell::cargo("test --package stagger-guide --test suite book").run()?;
    println!("{}", target_directory("book/index.html")?.display());
    Ok(())
}

/// The version of the suite that is installed. It runs on Python 2.7 only.
const AUTOBAHN: &str = "autobahntestsuite==25.10.1";
/// The last versions of virtualenv that create environments for Python 2.7.
const VIRTUALENV: &str = "virtualenv<20.22";

/// Runs the Autobahn Test Suite, which is installed below the target directory.
pub(crate) fn autobahn(arguments: &[OsString]) -> Result {
    let directory = target_directory("autobahn")?;
    let wstest = directory.join("environment/bin/wstest");
    if !wstest.is_file() {
        install_autobahn(&directory)?;
    }
    let tests = Shell::cargo("test --package stagger-ws --all-features --test autobahn").env("WSTEST", &wstest);
    tests.args(arguments).args(["--", "--ignored", "--nocapture", "--test-threads", "1"]).run()
}

fn install_autobahn(directory: &Path) -> Result {
    let python = || Shell::new("python2.7");
    if !python().args(["-m", "pip", "--version"]).succeeds() {
        let help = "the Autobahn Test Suite needs `python2.7` with pip in PATH; pyenv, for example, installs it";
        return Err(help.into());
    }
    let tools = directory.join("tools");
    python().args(["-m", "pip", "install", "--quiet", VIRTUALENV, "--target"]).args([&tools]).run()?;
    let environment = directory.join("environment");
    python().env("PYTHONPATH", &tools).args(["-m", "virtualenv", "--quiet"]).args([&environment]).run()?;
    Shell::new(environment.join("bin/pip")).args(["install", "--quiet", AUTOBAHN]).run()
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
            ("     Summary [   0.771s] 26 tests run: 26 passed, 2 skipped\n", (26, 0, 2)),
            ("     Summary [   1.000s] 1 test run: 1 passed, 0 skipped\n", (1, 0, 0)),
            ("  Summary [ 2s] 5/26 tests run: 2 passed (1 slow, 1 flaky), 1 failed, 2 timed out, 0 skipped", (2, 3, 0)),
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
