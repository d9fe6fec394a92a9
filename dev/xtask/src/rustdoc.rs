//! The interface of a library as rustdoc describes it, in JSON.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::Result;
use crate::shell::Shell;
use crate::workspace::{Package, Workspace, text};

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
