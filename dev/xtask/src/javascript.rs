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
use crate::files::{emptied, files, root};
use crate::shell::{Result, Shell, is_installed, no_arguments};
use crate::workspace::target_directory;

/// The client, below the root of the workspace.
const CLIENT: &str = "clients/js";

/// Node has a WebSocket of its own since version 22; before, behind a flag, which later versions accept.
const NODE_TEST: &[&str] = &["--experimental-websocket", "--test", "--test-reporter=tap", "--test-timeout=60000"];

/// Compiles the JavaScript client and its tests, runs them, and checks what is in the package.
pub(crate) fn step(_: &Options) -> Result<Note> {
    if !is_installed("node") {
        return Err("`node` is not in PATH: install Node 20 or later, on Debian the package nodejs".into());
    }
    let client = root().join(CLIENT);
    let tests = compile(&client)?;
    let passed = test(Shell::new("node").args(NODE_TEST), &client, &tests)?;
    let mut sizes = Vec::new();
    for (name, most) in MAX_BYTES {
        sizes.push(size_of_page(&client, name, most)?);
    }
    check_files(&client)?;
    Ok(Some(format!("{passed} passed, compressed: {}", sizes.join(", "))))
}

/// Compiles the client and its tests. Returns the files of the tests.
fn compile(client: &Path) -> Result<Vec<PathBuf>> {
    // What was compiled from a file that does not exist anymore would still be tested, or packed.
    emptied(&client.join("build"))?;
    emptied(&client.join("dist"))?;
    for project in ["tsconfig.json", "tsconfig.build.json"] {
        typescript()?.directory(client).args(["--project", project]).run()?;
    }
    let mut tests = files(&client.join("build/test"), "js")?;
    tests.retain(|path| path.to_string_lossy().ends_with(".test.js"));
    Ok(tests)
}

/// Runs the tests and returns how many have passed.
fn test(runtime: Shell, client: &Path, tests: &[PathBuf]) -> Result<u32> {
    let mut passed = 0;
    let runtime = runtime.directory(client).env("NO_COLOR", "1").args(tests);
    runtime.watch(|line| passed = passed.max(count_of_passed(line)))?;
    if passed == 0 { Err("no test of clients/js was run".into()) } else { Ok(passed) }
}

/// Returns the number in a line such as "# pass 256", "ok | 256 passed | 0 failed (8s)" or " 256 pass", or 0.
fn count_of_passed(line: &str) -> u32 {
    let words: Vec<_> = line.split_ascii_whitespace().collect();
    let number = match words[..] {
        ["#", "pass", number] | ["ok", "|", number, "passed", ..] | [number, "pass"] => number,
        _ => return 0,
    };
    number.parse().unwrap_or(0)
}

/// The limits of pages that import one name alone: minified, and compressed by gzip.
const MAX_BYTES: [(&str, usize); 3] =
    [("ReconnectingWebSocket", 6 * 1024), ("retry", 4 * 1024 + 512), ("fetchRetry", 8 * 1024 + 512)];

/// Returns the size of a page that imports this name alone.
fn size_of_page(client: &Path, name: &str, most: usize) -> Result<String> {
    let entry = client.join("build/size.js");
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

/// Checks that the package has a compiled file and its types for each source, and beside them the documents only.
/// Without npm only the documents are checked.
fn check_files(client: &Path) -> Result {
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if fs::read(client.join(license))? != fs::read(root().join(license))? {
            return Err(format!("clients/js/{license} differs from {license}: copy it").into());
        }
    }
    if !is_installed("npm") {
        return Ok(());
    }
    let pack = Shell::new("npm").directory(client).args(["pack", "--dry-run", "--json", "--ignore-scripts"]);
    let packed = packed(&serde_json::from_str(&pack.output()?)?)?;
    let wanted = wanted(&client.join("src"), &files(&client.join("src"), "ts")?);
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
    let mut wanted = BTreeSet::from(["package.json", "README.md", "LICENSE-MIT", "LICENSE-APACHE"].map(str::to_owned));
    for source in sources {
        let name = source.strip_prefix(directory).unwrap_or(source).with_extension("");
        let name = name.to_string_lossy().replace('\\', "/");
        wanted.extend([format!("dist/{name}.js"), format!("dist/{name}.d.ts")]);
    }
    wanted
}

/// Checks the fields and the files of a package.
const PUBLINT: &str = "publint@0.3.25";
/// Checks how each kind of module resolution finds the package and its types.
const TYPES_WRONG: &str = "@arethetypeswrong/cli@0.18.5";
/// A compiler that resolves modules as bundlers do, which that of Debian does not.
const CONSUMER_TYPESCRIPT: &str = "typescript@5.9.3";
/// The compiler that `npm install` brings.
const NEWEST_TYPESCRIPT: &str = "typescript@7.0.2";

/// Programs in [`CLIENT`] that have nothing but the package, one of them with a worker.
const PROGRAMS: [&str; 3] = ["consumer.ts", "workers.mjs", "worker.mjs"];

/// Packs the JavaScript client, checks the package with tools of npm's registry, and uses it in a program.
pub(crate) fn package(arguments: &[OsString]) -> Result {
    no_arguments(arguments)?;
    let client = root().join(CLIENT);
    typescript()?.directory(&client).args(["--project", "tsconfig.build.json"]).run()?;
    let newest = Shell::new("npx").directory(&client).args(["--yes", "--package", NEWEST_TYPESCRIPT]);
    newest.args(["tsc", "--noEmit"]).run()?;
    let directory = target_directory("js-package")?;
    let archive = install(&client, &directory)?;
    let run = |program: &str| Shell::new(program).directory(&directory);
    run("npx").args(["--yes", PUBLINT]).args([&archive]).args(["--strict"]).run()?;
    // A program in the syntax of CommonJS imports the package with `import()`.
    run("npx").args(["--yes", TYPES_WRONG]).args([&archive]).args(["--no-emoji", "--profile", "esm-only"]).run()?;
    for [module, resolution] in [["ES2022", "bundler"], ["node16", "node16"]] {
        let tsc = run("npx").args(["--yes", "--package", CONSUMER_TYPESCRIPT, "tsc", "consumer.ts", "--strict"]);
        let tsc = tsc.args(["--exactOptionalPropertyTypes", "--target", "ES2022", "--lib", "ES2022,DOM"]);
        tsc.args(["--module", module, "--moduleResolution", resolution]).run()?;
    }
    run("node").args(["consumer.js"]).run()?;
    let bundle = ["consumer.js", "--bundle", "--format=esm", "--target=es2022", "--outfile=bundle.js"];
    esbuild()?.directory(&directory).args(bundle).run()?;
    run("node").args(["bundle.js"]).run()?;
    println!("{} works", archive.file_name().unwrap_or_default().display());
    Ok(())
}

/// Packs the compiled client, and unpacks it as npm would for the programs in `directory`, which is emptied first.
/// Returns the archive.
fn install(client: &Path, directory: &Path) -> Result<PathBuf> {
    if !is_installed("npx") {
        return Err("`npx` is not in PATH: install npm 10 or later, on Debian the package npm".into());
    }
    emptied(directory)?;
    let installed = directory.join("node_modules/stagger-client");
    fs::create_dir_all(&installed)?;
    fs::write(directory.join("package.json"), r#"{ "type": "module" }"#)?;
    for name in PROGRAMS {
        fs::copy(client.join("runtimes").join(name), directory.join(name))?;
    }
    let pack = Shell::new("npm").directory(client).args(["pack", "--silent", "--ignore-scripts", "--pack-destination"]);
    let archive = directory.join(pack.args([directory]).output()?.trim());
    let extract = Shell::new("tar").args(["--strip-components=1", "--extract", "--file"]).args([&archive]);
    extract.args(["--directory".as_ref(), &*installed]).run()?;
    Ok(archive)
}

/// A program that runs JavaScript.
struct Runtime {
    /// The option of the command that has its path.
    option: &'static str,
    /// The arguments before the files of the tests.
    test: &'static [&'static str],
    /// The arguments before a module.
    run: &'static [&'static str],
    /// The arguments that run the consumer of the package.
    consumer: &'static [&'static str],
}

const RUNTIMES: [Runtime; 3] = [
    Runtime { option: "--node", test: NODE_TEST, run: &["--experimental-websocket"], consumer: &["consumer.js"] },
    Runtime {
        option: "--deno",
        test: &["test", "--no-check", "--allow-all"],
        run: &["run", "--no-check", "--allow-all"],
        // Checks the types, too. The client needs no permission but those of the requests that it makes.
        consumer: &["run", "--check", "--no-prompt", "consumer.ts"],
    },
    Runtime {
        option: "--bun",
        // All tests run in one process: without isolation, each file would see the global values of the others.
        test: &["test", "--isolate", "--timeout=60000"],
        run: &[],
        consumer: &["consumer.ts"],
    },
];

/// Runs the JavaScript client in the runtimes of these paths: its tests, programs that have nothing but the package,
/// and a client whose server in Rust is killed.
pub(crate) fn in_runtimes(arguments: &[OsString]) -> Result {
    let runtimes = runtimes(arguments)?;
    let client = root().join(CLIENT);
    let tests = compile(&client)?;
    let directory = target_directory("js-runtimes")?;
    install(&client, &directory)?;
    let strict = ["--strict", "--target", "ES2022", "--lib", "ES2022,DOM", "--module", "node16"];
    typescript()?.directory(&directory).args(["consumer.ts", "--moduleResolution", "node16"]).args(strict).run()?;
    let mut report = String::new();
    for (runtime, path) in &runtimes {
        let passed = test(Shell::new(path).args(runtime.test), &client, &tests)?;
        Shell::new(path).directory(&directory).args(runtime.consumer).run()?;
        Shell::new(path).directory(&directory).args(runtime.run).args(["workers.mjs"]).run()?;
        let server = Shell::cargo("test --package stagger-ws --all-features --test server javascript::a_client_in_");
        let server = server.env("JAVASCRIPT_RUNTIME", path);
        let mut was_run = false;
        let server = server.env("JAVASCRIPT_RUNTIME_ARGUMENTS", runtime.run.join(" "));
        server.watch(|line| was_run |= line.contains(" 1 passed"))?;
        if !was_run {
            return Err("the test of stagger-ws with a server that is killed was not found".into());
        }
        let version = Shell::new(path).args(["--version"]).output()?;
        let (name, version) = (runtime.option.trim_start_matches('-'), version.lines().next().unwrap_or_default());
        report += &format!("{name} ({version}): {passed} tests passed; the package works, also in a worker, ");
        report += "and so do clients of a server that is killed\n";
    }
    print!("{report}");
    Ok(())
}

/// Returns the runtimes that the arguments name, with their paths.
fn runtimes(arguments: &[OsString]) -> Result<Vec<(&'static Runtime, PathBuf)>> {
    const USAGE: &str = "cargo xtask js-runtimes [--node PATH | --deno PATH | --bun PATH]...";
    let mut named = Vec::new();
    for pair in arguments.chunks(2) {
        let runtime = RUNTIMES.iter().find(|runtime| pair[0] == runtime.option);
        let runtime = runtime.ok_or_else(|| format!("unknown argument `{}`; {USAGE}", pair[0].display()))?;
        let path = pair.get(1).ok_or_else(|| format!("`{}` needs a path; {USAGE}", runtime.option))?;
        // The tests run in other directories.
        let path = fs::canonicalize(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
        named.push((runtime, path));
    }
    if named.is_empty() { Err(format!("no runtime was named; {USAGE}").into()) } else { Ok(named) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_package_has_two_files_for_each_source_and_the_documents() {
        let wanted = wanted(Path::new("src"), &["src/index.ts".into(), "src/a/b.ts".into()]);
        let report = json!([{ "files": [
            { "path": "LICENSE-APACHE" }, { "path": "LICENSE-MIT" },
            { "path": "README.md" }, { "path": "package.json" },
            { "path": "dist/index.js" }, { "path": "dist/index.d.ts" },
            { "path": "dist/a/b.js" }, { "path": "dist/a/b.d.ts" },
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
        assert_eq!(runtimes.iter().map(|(runtime, _)| runtime.option).collect::<Vec<_>>(), ["--node"]);
    }
}
