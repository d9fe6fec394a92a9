use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::ci::{Note, Options};
use crate::files::files;
use crate::shell::{Shell, is_installed};
use crate::steps::packages::{esbuild, typescript};
use crate::{Result, workspace};

/// Compiles the JavaScript client and its tests, runs them, and checks what is in the package.
pub(crate) fn run(_: &Options) -> Result<Note> {
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
    let pack = Shell::new("npm").directory(package).args(["pack", "--dry-run", "--json", "--ignore-scripts"]);
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
}
