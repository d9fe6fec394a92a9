//! What rustdoc makes of the libraries: their pages, as here and on docs.rs, and their public interfaces.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use serde_json::Value;

use crate::ci::{Note, Options};
use crate::error::Result;
use crate::shell::Shell;
use crate::workspace::{Package, Workspace, everything, root, text};

pub(crate) fn pages(_: &Options) -> Result<Note> {
    Shell::cargo("doc --no-deps").args(everything()?).env("RUSTDOCFLAGS", "-D warnings").run()?;
    Ok(None)
}

/// Documents each published library with exactly the features and arguments of its `package.metadata.docs.rs`.
///
/// docs.rs has a nightly toolchain, where `cfg(docsrs)` enables unstable features; with `RUSTC_BOOTSTRAP` the stable one
/// accepts them, too.
pub(crate) fn pages_of_docs_rs(_: &Options) -> Result<Note> {
    let workspace = Workspace::here()?;
    let libraries: Vec<_> = workspace.published().filter(|package| package.is_library()).collect();
    for library in &libraries {
        let settings = DocsRs::of(library)?;
        let cargo = Shell::cargo("rustdoc --quiet --lib --package").args([&library.name]).args(settings.features);
        with_unstable_options(cargo.args(["--", "-D", "warnings"]).args(settings.rustdoc))?.run()?;
    }
    Ok(Some(format!("{} libraries", libraries.len())))
}

/// What a manifest asks of docs.rs.
#[derive(Debug, Default, PartialEq)]
struct DocsRs {
    features: Vec<String>,
    rustdoc: Vec<String>,
}

impl DocsRs {
    fn of(package: &Package) -> Result<Self> {
        Self::parse(&package.manifest("metadata")["docs"]["rs"])
            .map_err(|error| format!("{}: {error} in [package.metadata.docs.rs]", package.name).into())
    }

    /// # Errors
    ///
    /// If the table has a key that is not translated here: ignoring it would check something else than what docs.rs builds.
    fn parse(table: &Value) -> core::result::Result<Self, String> {
        let mut settings = Self::default();
        let strings = |value: &Value| -> Vec<String> { value.as_array().into_iter().flatten().map(text).collect() };
        for (key, value) in table.as_object().ok_or("no settings")? {
            match key.as_str() {
                "all-features" if *value == true => settings.features.push("--all-features".to_owned()),
                "no-default-features" if *value == true => settings.features.push("--no-default-features".to_owned()),
                "features" => settings.features.push(format!("--features={}", strings(value).join(","))),
                "rustdoc-args" => settings.rustdoc = strings(value),
                other => return Err(format!("unknown setting `{other} = {value}`")),
            }
        }
        Ok(settings)
    }
}

/// The version of the JSON that the `public-api` dependency reads. Each toolchain writes one version.
const FORMAT: u64 = 57;

/// Names the program that this one runs in place of itself, when cargo starts it as rustdoc.
const REAL: &str = "XTASK_RUSTDOC";

/// Lets the rustdoc of a cargo command accept unstable options.
///
/// A stable rustdoc does with `RUSTC_BOOTSTRAP` in its environment. Were the variable in that of cargo, build scripts of
/// dependencies would read it as well, and everything that depends on them would be built for this command alone. So
/// cargo starts this program as its rustdoc, which starts the real one with the variable.
///
/// # Errors
///
/// If the path of this program is unknown.
pub(crate) fn with_unstable_options(cargo: Shell) -> Result<Shell> {
    let real = env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    Ok(cargo.env("RUSTDOC", env::current_exe()?).env(REAL, real))
}

/// Runs the real rustdoc if cargo has started this program in its place, and returns its exit code.
pub(crate) fn run_in_place(arguments: &[OsString]) -> Option<ExitCode> {
    let real = env::var_os(REAL)?;
    let status = Command::new(&real).args(arguments).env_remove(REAL).env("RUSTC_BOOTSTRAP", "1").status();
    Some(match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot start `{}`: {error}", real.display());
            ExitCode::FAILURE
        }
    })
}

/// The rustdoc JSON of one library, with all features.
pub(crate) struct Rustdoc {
    path: PathBuf,
    json: Value,
}

impl Rustdoc {
    /// Documents the library of `package` with all its features, and reads the result.
    ///
    /// # Errors
    ///
    /// If rustdoc fails, or if this toolchain writes another version of the JSON than [`FORMAT`].
    pub(crate) fn generate(package: &Package) -> Result<Self> {
        let cargo = Shell::cargo("rustdoc --quiet --lib --all-features --package").args([&package.name]);
        let cargo = cargo.args(["--", "-Z", "unstable-options", "--output-format", "json"]);
        with_unstable_options(cargo)?.run()?;
        let directory = Workspace::here()?.target_directory.join("doc");
        let path = directory.join(format!("{}.json", package.name.replace('-', "_")));
        let json: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
        match json["format_version"].as_u64() {
            Some(FORMAT) => Ok(Self { path, json }),
            found => Err(format!(
                "this toolchain writes rustdoc JSON {}, xtask reads {FORMAT}; use Rust 1.95, or update `public-api` in \
                 dev/xtask/Cargo.toml together with the toolchain in .github/workflows/ci.yml",
                found.map_or("without a version".to_owned(), |version| version.to_string()),
            )
            .into()),
        }
    }

    /// Returns the path of the JSON file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names in the root of the crate, each once: those of `pub use other::*` included if `others` has the
    /// other crate.
    pub(crate) fn root_names(&self, others: &[&Self]) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.collect_names(&self.json["root"], others, &mut names);
        names
    }

    fn collect_names(&self, module: &Value, others: &[&Self], names: &mut BTreeSet<String>) {
        for id in self.item(module)["inner"]["module"]["items"].as_array().into_iter().flatten() {
            let item = self.item(id);
            let reexport = &item["inner"]["use"];
            if reexport["is_glob"] == true {
                let source = text(&reexport["source"]);
                if let Some(other) = others.iter().find(|other| other.crate_name() == source) {
                    other.collect_names(&other.json["root"], others, names);
                } else {
                    self.collect_names(&reexport["id"], others, names);
                }
            } else if let Some(name) = reexport["name"].as_str().or(item["name"].as_str()) {
                names.insert(name.to_owned());
            }
        }
    }

    fn crate_name(&self) -> String {
        text(&self.item(&self.json["root"])["name"])
    }

    fn item(&self, id: &Value) -> &Value {
        &self.json["index"][id.to_string()]
    }
}

/// The directory of the snapshots, one file per library, so that a change of an interface shows up in a diff.
const SNAPSHOTS: &str = "docs/public-api";

/// The library that most users import from.
const FACADE: &str = "stagger";

/// The limit for the names in the root of [`FACADE`]. Others belong into a module.
const ROOT_NAMES: usize = 60;

/// Compares each interface with its snapshot, prints the lines that differ, and returns a summary.
///
/// # Errors
///
/// If an interface differs, or if the root of [`FACADE`] has more than [`ROOT_NAMES`] names.
pub(crate) fn compare() -> Result<String> {
    let libraries = libraries()?;
    let mut changed = Vec::new();
    for (name, rustdoc) in &libraries {
        let interface = interface(rustdoc)?;
        let snapshot = fs::read_to_string(root().join(SNAPSHOTS).join(format!("{name}.txt"))).unwrap_or_default();
        if snapshot != interface {
            println!("{name} differs from {SNAPSHOTS}/{name}.txt:\n{}", diff(&snapshot, &interface));
            changed.push(name.as_str());
        }
    }
    if !changed.is_empty() {
        let names = changed.join(", ");
        let advice = "if intended: cargo xtask public-api --bless";
        return Err(format!("the interface differs from {SNAPSHOTS}: {names}; {advice}").into());
    }
    let names = root_names(FACADE, &libraries);
    if names.len() > ROOT_NAMES {
        println!("{}", names.iter().cloned().collect::<Vec<_>>().join("\n"));
        return Err(format!("the root of {FACADE} has {} names, more than {ROOT_NAMES}", names.len()).into());
    }
    Ok(format!("{} libraries; {} names in the root of {FACADE}", libraries.len(), names.len()))
}

/// Writes the snapshots.
pub(crate) fn bless() -> Result {
    let directory = root().join(SNAPSHOTS);
    fs::create_dir_all(&directory)?;
    for (name, rustdoc) in libraries()? {
        fs::write(directory.join(format!("{name}.txt")), interface(&rustdoc)?)?;
    }
    Ok(())
}

/// Returns the name and the rustdoc JSON of each published library.
fn libraries() -> Result<Vec<(String, Rustdoc)>> {
    let workspace = Workspace::here()?;
    let libraries = workspace.published().filter(|package| package.is_library());
    libraries.map(|package| Ok((package.name.clone(), Rustdoc::generate(package)?))).collect()
}

/// Returns the names in the root of a library, including those that it re-exports from the other libraries.
fn root_names(name: &str, libraries: &[(String, Rustdoc)]) -> BTreeSet<String> {
    let all: Vec<_> = libraries.iter().map(|(_, rustdoc)| rustdoc).collect();
    let library = libraries.iter().find(|(other, _)| other == name);
    library.map(|(_, rustdoc)| rustdoc.root_names(&all)).unwrap_or_default()
}

/// Renders an interface, an item per line, without the items of blanket and auto trait implementations. A derived
/// implementation is its `impl` line alone.
fn interface(rustdoc: &Rustdoc) -> Result<String> {
    let builder = public_api::Builder::from_rustdoc_json(rustdoc.path());
    let builder = builder.omit_blanket_impls(true).omit_auto_trait_impls(true);
    let shown = builder.clone().omit_auto_derived_impls(true).build()?.to_string();
    let shown: BTreeSet<_> = shown.lines().collect();
    let all = builder.build()?.to_string();
    // `derive(PartialEq)` also marks the type for the compiler.
    let is_derived = |line: &str| line.starts_with("impl") && !line.contains("::StructuralPartialEq for ");
    let lines = all.lines().filter(|line| shown.contains(line) || is_derived(line));
    Ok(lines.flat_map(|line| [line, "\n"]).collect())
}

/// Returns the lines that occur in only one of the two texts: first those of `old` (`-`), then those of `new` (`+`).
fn diff(old: &str, new: &str) -> String {
    let (before, after): (BTreeSet<_>, BTreeSet<_>) = (old.lines().collect(), new.lines().collect());
    let removed = old.lines().filter(|line| !after.contains(line)).map(|line| format!("-{line}\n"));
    let added = new.lines().filter(|line| !before.contains(line)).map(|line| format!("+{line}\n"));
    removed.chain(added).collect()
}

pub(crate) fn public_api(arguments: &[OsString]) -> Result {
    match arguments {
        [] => compare().map(|compared| println!("{compared}: the snapshots match")),
        [argument] if argument == "--bless" => bless(),
        _ => Err("the only argument is --bless, which rewrites the snapshots".into()),
    }
}

pub(crate) fn public_api_step(_: &Options) -> Result<Note> {
    compare().map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_of_docs_rs_become_arguments_of_cargo_and_rustdoc() {
        let table = json!({ "all-features": true, "rustdoc-args": ["--cfg", "docsrs"] });
        let settings = DocsRs::parse(&table).unwrap();
        assert_eq!(settings.features, ["--all-features"]);
        assert_eq!(settings.rustdoc, ["--cfg", "docsrs"]);
        let settings = DocsRs::parse(&json!({ "features": ["a", "b"], "no-default-features": true })).unwrap();
        assert_eq!(settings.features, ["--features=a,b", "--no-default-features"]);
    }

    #[test]
    fn a_setting_of_docs_rs_that_is_not_checked_is_an_error() {
        assert_eq!(DocsRs::parse(&json!({ "targets": ["a"] })).unwrap_err(), "unknown setting `targets = [\"a\"]`");
        assert_eq!(DocsRs::parse(&Value::Null).unwrap_err(), "no settings");
    }

    fn rustdoc(json: Value) -> Rustdoc {
        Rustdoc { path: PathBuf::new(), json }
    }

    #[test]
    fn root_names_follow_globs_and_count_each_name_once() {
        let core = rustdoc(json!({ "root": 0, "index": {
            "0": { "name": "the_core", "inner": { "module": { "items": [1, 2] } } },
            "1": { "name": "Policy", "inner": { "struct": {} } },
            "2": { "name": "retry", "inner": { "module": { "items": [3] } } },
            "3": { "name": "Nested", "inner": { "struct": {} } },
        } }));
        let library = rustdoc(json!({ "root": 0, "index": {
            "0": { "name": "library", "inner": { "module": { "items": [1, 2, 3, 4] } } },
            "1": { "name": null, "inner": { "use": { "source": "the_core", "name": "the_core", "is_glob": true } } },
            "2": { "name": null, "inner": { "use": { "source": "self::x::A", "name": "B", "is_glob": false } } },
            "3": { "name": null, "inner": { "use": { "source": "self::x", "name": "x", "is_glob": true, "id": 5 } } },
            "4": { "name": "retry", "inner": { "function": {} } },
            "5": { "name": "x", "inner": { "module": { "items": [6] } } },
            "6": { "name": "inner_fn", "inner": { "function": {} } },
        } }));
        let names = library.root_names(&[&core]);
        assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), ["B", "Policy", "inner_fn", "retry"]);
    }

    #[test]
    fn diff_has_the_lines_of_one_side_only() {
        assert_eq!(diff("a\nb\nc\n", "a\nc\nd\n"), "-b\n+d\n");
        assert_eq!(diff("", "a\n"), "+a\n");
        assert_eq!(diff("a\n", "a\n"), "");
    }
}
