//! `cargo xtask ci`: runs the steps in order and stops at the first failure. Two run beside the last ones.

use core::time::Duration;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{env, io};

use lexopt::{Arg, Parser, ValueExt};

use crate::shell::{Error, Result};
use crate::workspace::target_directory;
use crate::{debian, javascript, rustdoc, targets, testing, tool};

/// What a step reports besides that it passed, such as a number of tests.
pub(crate) type Note = Option<String>;

pub(crate) struct Options {
    /// Run time of each fuzz target.
    pub(crate) fuzz_seconds: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { fuzz_seconds: 5 }
    }
}

struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&Options) -> Result<Note>,
}

/// The steps in order: those that are cheap and likely to fail come first.
const STEPS: [Step; 13] = [
    step("packages", "installs the system packages that the tests need", debian::packages),
    step("format", "rustfmt reports no difference", tool::format),
    step("lint", "clippy reports nothing", tool::clippy),
    step("test", "unit and integration tests with all features", testing::unit_and_integration),
    step("js", "the JavaScript client: types, tests, and what is in its package", javascript::step),
    step("doc-test", "examples in the documentation", testing::doc_tests),
    step("examples", "each example runs and exits with 0", testing::examples),
    step("doc", "rustdoc reports nothing, with the features and settings of docs.rs", rustdoc::pages),
    step("public-api", "public interfaces match docs/public-api", rustdoc::compare_interfaces),
    step("features", "published crates with no feature, each feature alone, and all", tool::features),
    step("no-std", "stagger-core links without the standard library", targets::no_std),
    step("fuzz", "each fuzz target for a limited time", testing::fuzz),
    step("loom", "lock-free code under every interleaving", testing::loom),
];

/// The steps that need one processor and have a target directory to themselves: in a run of all, a process of their own
/// begins with them after the tests.
const BESIDE: [&str; 2] = ["fuzz", "loom"];

/// The step before which that process starts.
const BESIDE_FROM: &str = "js";

const fn step(name: &'static str, about: &'static str, run: fn(&Options) -> Result<Note>) -> Step {
    Step { name, about, run }
}

const USAGE: &str = "\
cargo xtask ci [OPTIONS]

  --only STEP         run only this step; can be repeated
  --list              list the steps in order
  --fuzz-seconds N    run time of each fuzz target [default: 5]
";

pub(crate) fn run(arguments: &[OsString]) -> Result {
    match Request::parse(arguments)? {
        Request::Help => print!("{USAGE}"),
        Request::List => STEPS.iter().for_each(|step| println!("{:<16}{}", step.name, step.about)),
        Request::Run { only, options } => return run_all(&selected(&only), &options),
    }
    Ok(())
}

enum Request {
    Help,
    List,
    Run { only: Vec<&'static str>, options: Options },
}

impl Request {
    fn parse(arguments: &[OsString]) -> Result<Self> {
        let (mut only, mut options) = (Vec::new(), Options::default());
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("help") | Arg::Short('h') => return Ok(Self::Help),
                Arg::Long("list") => return Ok(Self::List),
                Arg::Long("only") => only.push(step_named(&parser.value()?.string()?)?),
                Arg::Long("fuzz-seconds") => options.fuzz_seconds = parser.value()?.parse()?,
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(Self::Run { only, options })
    }
}

/// Returns the steps to run, in order: those of `only`, or all if it is empty.
fn selected(only: &[&str]) -> Vec<&'static Step> {
    STEPS.iter().filter(|step| only.is_empty() || only.contains(&step.name)).collect()
}

fn step_named(name: &str) -> Result<&'static str> {
    let found = STEPS.iter().find(|step| step.name == name);
    found.map(|step| step.name).ok_or_else(|| {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        format!("unknown step `{name}`; expected one of {}", names.join(", ")).into()
    })
}

fn run_all(steps: &[&Step], options: &Options) -> Result {
    let mut rows = Vec::new();
    let mut beside = None;
    for (passed, step) in steps.iter().enumerate() {
        if step.name == BESIDE_FROM && steps.len() == STEPS.len() {
            beside = Some(Beside::start(options)?);
        }
        if beside.is_some() && BESIDE.contains(&step.name) {
            continue;
        }
        eprintln!("\n== {}: {}", step.name, step.about);
        let (result, took) = timed(|| (step.run)(options));
        let (line, failure) = match result {
            Ok(note) => (note.unwrap_or_default(), None),
            Err(error) => (format!("FAILED: {error}"), Some(error)),
        };
        rows.push(Row { step: step.name, took, line });
        if let Some(error) = failure {
            let skipped: Vec<_> = steps[passed + 1..].iter().map(|step| step.name).collect();
            return Err(report_failure(step, &error, &rows, &skipped));
        }
        eprintln!("== {}: passed in {:.1} s", step.name, took.as_secs_f64());
    }
    if let Some(beside) = beside {
        let (result, took) = timed(|| beside.finish());
        rows.push(Row { step: "fuzz, loom", took, line: "what was left of them".to_owned() });
        result?;
    }
    println!("\n{}\n{} steps passed, 0 failed", table(&rows), steps.len());
    Ok(())
}

/// The process that runs the steps of [`BESIDE`]. Its output is printed at its end.
struct Beside {
    child: Child,
    log: PathBuf,
}

impl Beside {
    fn start(options: &Options) -> Result<Self> {
        let log = target_directory("ci-beside.log")?;
        let file = File::create(&log)?;
        let mut command = Command::new(env::current_exe()?);
        command.args(["ci", "--fuzz-seconds", &options.fuzz_seconds.to_string()]);
        command.args(BESIDE.iter().flat_map(|step| ["--only", step]));
        let child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
        eprintln!("\n== {}: begun beside the next steps", BESIDE.join(", "));
        Ok(Self { child, log })
    }

    fn finish(mut self) -> Result {
        let status = self.child.wait()?;
        io::copy(&mut File::open(&self.log)?, &mut io::stderr())?;
        if status.success() { Ok(()) } else { Err(format!("a step of {} failed", BESIDE.join(", ")).into()) }
    }
}

/// After the failure of another step, these are of no use.
impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A step that was run.
struct Row {
    step: &'static str,
    took: Duration,
    line: String,
}

/// Returns the seconds of each step, its share of their sum, and its note; the sum comes last.
fn table(rows: &[Row]) -> String {
    let total: Duration = rows.iter().map(|row| row.took).sum();
    let line = |step: &str, took: Duration, note: &str| {
        let share = 100.0 * took.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
        format!("  {step:<16}{:>9.1}{share:>6.0} %  {note}", took.as_secs_f64()).trim_end().to_owned() + "\n"
    };
    let steps = rows.iter().map(|row| line(row.step, row.took, &row.line));
    let head = format!("  {:<16}{:>9}{:>8}\n", "step", "seconds", "share");
    [head].into_iter().chain(steps).chain([line("total", total, "")]).collect()
}

/// Prints the report and returns the error of the whole run.
fn report_failure(step: &Step, error: &Error, rows: &[Row], skipped: &[&str]) -> Error {
    println!("\n{}", table(rows));
    if !skipped.is_empty() {
        println!("  not run: {}\n", skipped.join(", "));
    }
    println!("{} steps passed, 1 failed", rows.len() - 1);
    format!("step `{0}` failed: {error}\nto run this step again: cargo xtask ci --only {0}", step.name).into()
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    (work(), started.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Request> {
        Request::parse(&arguments.iter().map(Into::into).collect::<Vec<_>>())
    }

    #[test]
    fn steps_are_selected_by_name() {
        let request = parse(&["--only", "lint", "--fuzz-seconds=3", "--only=test"]).unwrap();
        let Request::Run { only, options } = request else { panic!("not a run") };
        assert_eq!((only, options.fuzz_seconds), (vec!["lint", "test"], 3));
    }

    #[test]
    fn an_unknown_step_is_an_error_that_lists_the_steps() {
        let error = parse(&["--only", "tests"]).err().unwrap().to_string();
        assert!(error.contains("unknown step `tests`; expected one of packages, format, lint, test, js,"), "{error}");
    }

    #[test]
    fn all_steps_run_unless_some_are_named() {
        assert_eq!(selected(&[]).len(), STEPS.len());
        assert_eq!(selected(&["lint"]).iter().map(|step| step.name).collect::<Vec<_>>(), ["lint"]);
    }

    #[test]
    fn the_report_has_seconds_and_share_of_each_step_and_their_sum() {
        let row = |step, seconds, line: &str| Row { step, took: Duration::from_secs(seconds), line: line.to_owned() };
        let want = "  step              seconds   share\n  \
                      format                1.0    25 %\n  \
                      test                  3.0    75 %  9 passed\n  \
                      total                 4.0   100 %\n";
        assert_eq!(table(&[row("format", 1, ""), row("test", 3, "9 passed")]), want);
        assert!(table(&[row("format", 0, "")]).contains("   0 %"));
    }

    #[test]
    fn step_names_are_unique() {
        for (number, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..number].iter().all(|other| other.name != step.name), "{}", step.name);
        }
    }
}
