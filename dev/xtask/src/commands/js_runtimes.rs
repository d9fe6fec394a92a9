use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::js_package::{CONSUMER, install};
use crate::shell::{Shell, is_installed};
use crate::steps::js::compile;
use crate::steps::packages::typescript;
use crate::{Result, workspace};

const USAGE: &str = "cargo xtask js-runtimes [--node PATH | --deno PATH | --bun PATH]...";

/// What the paths of this command are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Node,
    Deno,
    Bun,
}

/// A program that runs JavaScript.
struct Runtime {
    kind: Kind,
    path: PathBuf,
}

/// Programs that have nothing but the package.
const PROGRAMS: [&str; 2] = ["workers.mjs", "worker.mjs"];

/// Runs the JavaScript client in the runtimes of these paths: its tests, programs that have nothing but the package, one of them
/// with a worker, and a client whose server in Rust is killed.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    let runtimes = runtimes(arguments)?;
    if !is_installed("npm") {
        return Err("`npm` is not in PATH: install npm 10 or later, on Debian the package npm".into());
    }
    let package = workspace::root().join("clients/js");
    let tests = compile(&package)?;
    let directory = workspace::target_directory("js-runtimes")?;
    install(&package, &directory)?;
    fs::write(directory.join("consumer.ts"), CONSUMER)?;
    for name in PROGRAMS {
        fs::copy(package.join("runtimes").join(name), directory.join(name))?;
    }
    let strict = ["--strict", "--target", "ES2022", "--lib", "ES2022,DOM", "--module", "node16"];
    typescript()?.directory(&directory).args(["consumer.ts", "--moduleResolution", "node16"]).args(strict).run()?;
    let lines: Result<Vec<_>> = runtimes.iter().map(|runtime| check(runtime, &package, &tests, &directory)).collect();
    println!("{}", lines?.join("\n"));
    Ok(())
}

/// Returns what was run, for the terminal.
fn check(runtime: &Runtime, package: &Path, tests: &[PathBuf], directory: &Path) -> Result<String> {
    let version = runtime.version()?;
    let mut passed = 0;
    let shell = Shell::new(&runtime.path).directory(package).env("NO_COLOR", "1");
    shell.args(runtime.test_arguments()).args(tests).watch(|line| passed = passed.max(count_of_passed(line)))?;
    if passed == 0 {
        return Err(format!("{version} has run no test of clients/js").into());
    }
    let program = || Shell::new(&runtime.path).directory(directory);
    match runtime.kind {
        Kind::Node => program().args(["consumer.js"]).run()?,
        // Checks the types, too. The client needs no permission but those of the requests that it makes.
        Kind::Deno => program().args(["run", "--check", "--no-prompt", "consumer.ts"]).run()?,
        Kind::Bun => program().args(["consumer.ts"]).run()?,
    }
    program().args(runtime.run_arguments()).args([PROGRAMS[0]]).run()?;
    let server = Shell::cargo("test --package stagger-ws --all-features --test server javascript::a_client_in_");
    let server = server.env("JAVASCRIPT_RUNTIME", &runtime.path);
    let mut was_run = false;
    let server = server.env("JAVASCRIPT_RUNTIME_ARGUMENTS", runtime.run_arguments().join(" "));
    server.watch(|line| was_run |= line.contains(" 1 passed"))?;
    if !was_run {
        return Err("the test of stagger-ws with a server that is killed was not found".into());
    }
    Ok(format!(
        "{version}: {passed} tests passed; the package works, also in a worker, and so do clients of a server that is killed"
    ))
}

impl Runtime {
    /// Returns the name and the version, as in "Node v22.23.3".
    fn version(&self) -> Result<String> {
        let version = Shell::new(&self.path).args(["--version"]).output()?;
        let first = version.lines().next().unwrap_or_default().trim();
        let name = format!("{:?}", self.kind);
        let is_named = first.to_ascii_lowercase().starts_with(&name.to_ascii_lowercase());
        Ok(if is_named { first.to_owned() } else { format!("{name} {first}") })
    }

    /// Returns the arguments before the files of the tests.
    fn test_arguments(&self) -> &[&str] {
        match self.kind {
            // Node has a WebSocket of its own since version 22; before, behind this flag, which later versions accept.
            Kind::Node => &["--experimental-websocket", "--test", "--test-reporter=tap", "--test-timeout=60000"],
            Kind::Deno => &["test", "--no-check", "--allow-all"],
            // All tests run in one process: without isolation, each file would see the global values of the others.
            Kind::Bun => &["test", "--isolate", "--timeout=60000"],
        }
    }

    /// Returns the arguments before a module.
    fn run_arguments(&self) -> &[&str] {
        match self.kind {
            Kind::Node => &["--experimental-websocket"],
            Kind::Deno => &["run", "--no-check", "--allow-all"],
            Kind::Bun => &[],
        }
    }
}

/// Returns the number in a line such as "# pass 256", "ok | 256 passed | 0 failed (8s)" or " 256 pass", or 0.
fn count_of_passed(line: &str) -> u32 {
    let words: Vec<_> = line.split_ascii_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
    match *words.as_slice() {
        ["#", "pass", _] | ["ok", "|", _, "passed", ..] => number(2),
        [_, "pass"] => number(0),
        _ => None,
    }
    .unwrap_or(0)
}

fn runtimes(arguments: &[OsString]) -> Result<Vec<Runtime>> {
    let pairs = arguments.chunks(2).map(|pair| {
        let kind = match pair[0].to_str() {
            Some("--node") => Kind::Node,
            Some("--deno") => Kind::Deno,
            Some("--bun") => Kind::Bun,
            _ => return Err(format!("unknown argument `{}`; {USAGE}", pair[0].display()).into()),
        };
        let path = pair.get(1).ok_or_else(|| format!("`{}` needs a path; {USAGE}", pair[0].display()))?;
        // The tests run in other directories.
        let path = fs::canonicalize(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
        Ok(Runtime { kind, path })
    });
    let runtimes = pairs.collect::<Result<Vec<_>>>()?;
    if runtimes.is_empty() { Err(format!("no runtime was named; {USAGE}").into()) } else { Ok(runtimes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_passed_tests_of_each_runtime_are_counted() {
        for (line, count) in [
            ("# pass 256\n", 256),
            ("ok | 256 passed | 0 failed (8s)\n", 256),
            (" 256 pass\n", 256),
            (" 0 fail\n", 0),
            ("ok 3 - a pass\n", 0),
            ("# fail 2\n", 0),
            ("", 0),
        ] {
            assert_eq!(count_of_passed(line), count, "{line}");
        }
    }

    #[test]
    fn invalid_arguments_are_named() {
        for (arguments, message) in [
            (&[][..], "no runtime was named"),
            (&["--deno"], "`--deno` needs a path"),
            (&["--bunn", "/bin/true"], "unknown argument `--bunn`"),
            (&["--bun", "/no/such/file"], "`/no/such/file`: No such file"),
        ] {
            let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
            let error = runtimes(&arguments).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(message), "{error}");
        }
        let runtimes = runtimes(&["--node", "/bin/true"].map(OsString::from)).unwrap();
        assert_eq!(runtimes.iter().map(|runtime| runtime.kind).collect::<Vec<_>>(), [Kind::Node]);
    }
}
