//! The JavaScript client: its tests, its package, and the runtimes that it works in.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::ci::{Note, Options};
use crate::debian::{esbuild, typescript};
use crate::error::Result;
use crate::files::files;
use crate::shell::{Shell, is_installed};
use crate::workspace;

/// Compiles the JavaScript client and its tests, runs them, and checks what is in the package.
pub(crate) fn step(_: &Options) -> Result<Note> {
    if !is_installed("node") {
        return Err("`node` is not in PATH: install Node 20 or later, on Debian the package nodejs".into());
    }
    let package = workspace::root().join("clients/js");
    let tests = compile(&package)?;
    let mut passed = 0_u32;
    // Node has a WebSocket of its own since version 22; before, behind this flag.
    let run = Shell::new("node")
        .directory(&package)
        .args(["--experimental-websocket", "--test", "--test-reporter=tap", "--test-timeout=60000"])
        .args(tests);
    run.watch(|line| passed += line.strip_prefix("# pass ").and_then(|n| n.trim().parse().ok()).unwrap_or(0))?;
    if passed == 0 {
        return Err("no test of clients/js was run".into());
    }
    let sizes: Result<Vec<_>> = MAX_BYTES.iter().map(|(name, most)| check_size(&package, name, *most)).collect();
    check_files(&package)?;
    Ok(Some(format!("{passed} passed, compressed: {}", sizes?.join(", "))))
}

/// Compiles the client and its tests. Returns the files of the tests.
pub(crate) fn compile(package: &Path) -> Result<Vec<PathBuf>> {
    // What was compiled from a file that does not exist anymore would still be tested, or packed.
    for output in ["build", "dist"].map(|name| package.join(name)) {
        if output.is_dir() {
            fs::remove_dir_all(output)?;
        }
    }
    for project in ["tsconfig.json", "tsconfig.build.json"] {
        typescript()?.directory(package).args(["--project", project]).run()?;
    }
    let mut tests = files(&package.join("build/test"), "js")?;
    tests.retain(|path| path.to_string_lossy().ends_with(".test.js"));
    Ok(tests)
}

/// The limits of pages that import one name alone: minified, and compressed by gzip.
const MAX_BYTES: [(&str, usize); 3] =
    [("ReconnectingWebSocket", 6 * 1024), ("retry", 4 * 1024 + 512), ("fetchRetry", 11 * 1024 + 512)];

/// Returns the size of a page that imports this name alone.
fn check_size(package: &Path, name: &str, most: usize) -> Result<String> {
    let entry = package.join("build/size.js");
    fs::write(&entry, format!("import {{ {name} }} from \"../dist/index.js\";\nglobalThis.it = {name};\n"))?;
    let bundle =
        esbuild()?.args([&entry]).args(["--bundle", "--minify", "--format=esm", "--target=es2022"]).output()?;
    let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
    compressed.write_all(bundle.as_bytes())?;
    let size = compressed.finish()?.len();
    if size > most {
        return Err(format!("{name} takes {size} bytes compressed, and {most} are allowed").into());
    }
    Ok(format!("{size} bytes for {name}"))
}

/// Checks that the package has a compiled file and its types for each source, and beside them the documents only. Without npm
/// only the documents are checked.
fn check_files(package: &Path) -> Result {
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if fs::read(package.join(license))? != fs::read(workspace::root().join(license))? {
            return Err(format!("clients/js/{license} differs from {license}: copy it").into());
        }
    }
    if !is_installed("npm") {
        return Ok(());
    }
    let pack = Shell::new("npm").directory(package).args(["pack", "--dry-step", "--json", "--ignore-scripts"]);
    let packed = packed(&serde_json::from_str(&pack.output()?)?)?;
    let wanted = wanted(&package.join("src"), &files(&package.join("src"), "ts")?);
    let differing: Vec<_> = packed.symmetric_difference(&wanted).map(String::as_str).collect();
    if differing.is_empty() {
        return Ok(());
    }
    let message = "the package must have two files for each source, the documents, and nothing else; see `files` in";
    Err(format!("{} packed or missing by mistake: {message} clients/js/package.json", differing.join(", ")).into())
}

/// Returns the paths that `npm pack --json` reports.
fn packed(report: &Value) -> Result<BTreeSet<String>> {
    // A list of packages, or since npm 12 an object of them by name.
    let first = report.get(0).or_else(|| report.as_object()?.values().next());
    let files = first.and_then(|package| package["files"].as_array()).ok_or("`npm pack --json` reports no files")?;
    Ok(files.iter().filter_map(|file| file["path"].as_str()).map(str::to_owned).collect())
}

/// Returns the paths that a package with these sources has.
fn wanted(directory: &Path, sources: &[PathBuf]) -> BTreeSet<String> {
    let documents = ["package.json", "README.md", "LICENSE-MIT", "LICENSE-APACHE"].map(str::to_owned);
    let compiled = sources.iter().flat_map(|source| {
        let name = source.strip_prefix(directory).unwrap_or(source).with_extension("");
        let name = name.to_string_lossy().replace('\\', "/");
        [format!("dist/{name}.js"), format!("dist/{name}.d.ts")]
    });
    compiled.chain(documents).collect()
}

/// Checks the fields and the files of a package.
const PUBLINT: &str = "publint@0.3.25";
/// Checks how each kind of module resolution finds the package and its types.
const TYPES_WRONG: &str = "@arethetypeswrong/cli@0.18.5";
/// A compiler that resolves modules as bundlers do, which that of Debian does not.
const CONSUMER_TYPESCRIPT: &str = "typescript@5.9.3";
/// The compiler that `npm install` brings.
const NEWEST_TYPESCRIPT: &str = "typescript@7.0.2";

/// What a program may write that has nothing but the package. The type annotations are checked, and the rest is package.
const CONSUMER: &str = r#"import { delays, fetchRetry, parsePolicy, Policy, QuietPeriods, ReconnectingWebSocket, retry, RetryError, TokenBudget } from "stagger-client";

const policy: Policy = parsePolicy("constant base=1ms jitter=none max-attempts=3");
const budget = new TokenBudget({ capacity: 100 });
const made: number = await retry(({ number }) => (number < 3 ? Promise.reject(new Error("again")) : number), policy, { budget });
const send = async (): Promise<Response> => new Response("done");
const text: string = await (await fetchRetry("https://example.com/", {}, { policy, fetch: send, quiet: new QuietPeriods() })).text();
const failed: unknown = await retry(() => Promise.reject("no"), policy).catch((error: unknown) => error);
const listed: bigint[] = [...delays(policy, 1n)];
const isRight = made === 3 && text === "done" && failed instanceof RetryError && failed.cause === "no" && listed.length === 2;
if (!isRight || typeof ReconnectingWebSocket !== "function") {
  throw new Error("the package does not work");
}
"#;

/// Packs the JavaScript client, checks the package with tools of npm's registry, and uses it in a program.
pub(crate) fn package(arguments: &[OsString]) -> Result {
    if !arguments.is_empty() {
        return Err("takes no arguments".into());
    }
    if !is_installed("npx") {
        return Err("`npx` is not in PATH: install npm 10 or later, on Debian the package npm".into());
    }
    let source = workspace::root().join("clients/js");
    typescript()?.directory(&source).args(["--project", "tsconfig.build.json"]).run()?;
    let newest = Shell::new("npx").directory(&source).args(["--yes", "--package", NEWEST_TYPESCRIPT]);
    newest.args(["tsc", "--noEmit"]).run()?;
    let directory = workspace::target_directory("js-package")?;
    let archive = install(&source, &directory)?;
    let npx = |tool| Shell::new("npx").directory(&directory).args(["--yes", tool]);
    npx(PUBLINT).args([&archive]).args(["--strict"]).run()?;
    // A program in the syntax of CommonJS imports the package with `import()`.
    npx(TYPES_WRONG).args([&archive]).args(["--no-emoji", "--profile", "esm-only"]).run()?;
    use_it(&directory)?;
    println!("{} works", archive.file_name().unwrap_or_default().display());
    Ok(())
}

/// Packs the compiled client, and unpacks it as npm would for a program in `directory`, which is emptied first. Returns the
/// archive.
fn install(source: &Path, directory: &Path) -> Result<PathBuf> {
    if directory.is_dir() {
        fs::remove_dir_all(directory)?;
    }
    let installed = directory.join("node_modules/stagger-client");
    fs::create_dir_all(&installed)?;
    fs::write(directory.join("package.json"), r#"{ "type": "module" }"#)?;
    let pack = Shell::new("npm").directory(source).args(["pack", "--silent", "--ignore-scripts", "--pack-destination"]);
    let archive = directory.join(pack.args([directory]).output()?.trim());
    let extract = Shell::new("tar").args(["--strip-components=1", "--extract", "--file"]).args([&archive]);
    extract.args(["--directory".as_ref(), &*installed]).run()?;
    Ok(archive)
}

/// Checks the types of a program that has the package, bundles it, and runs it, bundled or not.
fn use_it(directory: &Path) -> Result {
    fs::write(directory.join("consumer.ts"), CONSUMER)?;
    for [module, resolution] in [["ES2022", "bundler"], ["node16", "node16"]] {
        let tsc = Shell::new("npx").directory(directory).args([
            "--yes",
            "--package",
            CONSUMER_TYPESCRIPT,
            "tsc",
            "consumer.ts",
        ]);
        let strict = ["--strict", "--exactOptionalPropertyTypes", "--target", "ES2022", "--lib", "ES2022,DOM"];
        tsc.args(strict).args(["--module", module, "--moduleResolution", resolution]).run()?;
    }
    Shell::new("node").directory(directory).args(["consumer.js"]).run()?;
    let bundle = ["consumer.js", "--bundle", "--format=esm", "--target=es2022", "--outfile=bundle.js"];
    esbuild()?.directory(directory).args(bundle).run()?;
    Shell::new("node").directory(directory).args(["bundle.js"]).run()
}

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
pub(crate) fn in_runtimes(arguments: &[OsString]) -> Result {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_package_has_two_files_for_each_source_and_the_documents() {
        let wanted = wanted(Path::new("src"), &["src/index.ts".into(), "src/a/b.ts".into()]);
        let report = json!([{ "files": [
            { "path": "LICENSE-APACHE" }, { "path": "LICENSE-MIT" }, { "path": "README.md" }, { "path": "package.json" },
            { "path": "dist/index.js" }, { "path": "dist/index.d.ts" }, { "path": "dist/a/b.js" }, { "path": "dist/a/b.d.ts" },
        ] }]);
        assert_eq!(packed(&report).unwrap(), wanted);
        assert_eq!(packed(&json!({ "stagger-client": report[0] })).unwrap(), wanted);
        assert!(packed(&json!([])).is_err());
    }

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
