//! `cargo xtask lowest`: whether the lower bounds of dependencies are true.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::Result;
use crate::crates;
use crate::shell::Shell;
use crate::workspace::{self, Package, Workspace, list, text};

/// Checks each published library, with all features, against the lowest versions of its own dependencies. Arguments name the
/// libraries to check; without any, all are.
///
/// Each library is resolved alone: in one workspace, its bounds would be raised by those of the others.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    let workspace = Workspace::here()?;
    let is_named = |package: &&Package| arguments.is_empty() || arguments.iter().any(|name| *name == *package.name);
    let libraries: Vec<_> = workspace.published().filter(|package| package.is_library()).filter(is_named).collect();
    if libraries.len() < arguments.len() {
        return Err("an argument is not the name of a published library".into());
    }
    let directory = workspace::target_directory("lowest")?;
    let sources = directory.join("crates");
    if sources.exists() {
        fs::remove_dir_all(&sources)?;
    }
    fs::create_dir_all(&sources)?;
    // The manifest of a package is complete, and has no dependency by path.
    let names = workspace.published().filter(|package| package.is_library()).flat_map(|package| ["-p", &package.name]);
    Shell::cargo("package --quiet --no-verify --allow-dirty").args(names).run()?;
    crates::unpack(&workspace, &sources)?;
    for library in &libraries {
        check(library, &workspace, &sources, &directory.join("target"))?;
    }
    println!("{} libraries build with the lowest versions of their dependencies", libraries.len());
    Ok(())
}

fn check(library: &Package, workspace: &Workspace, sources: &Path, target: &Path) -> Result {
    let directory = sources.join(crates::name_and_version(library));
    let manifest = directory.join("Cargo.toml");
    let others = crates::patches(workspace, "../", |other| other.name != library.name);
    let excepted = Excepted::of(library)?;
    let reduced = excepted.removed_from(&without_development(&fs::read_to_string(&manifest)?));
    fs::write(&manifest, reduced + "\n[workspace]\n" + &others)?;
    // It would have the versions that the package was tested with.
    match fs::remove_file(directory.join("Cargo.lock")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    // The option is unstable; a stable cargo accepts it with this variable.
    let resolve = Shell::cargo("-Z direct-minimal-versions generate-lockfile --quiet").directory(&directory);
    resolve.env("RUSTC_BOOTSTRAP", "1").run()?;
    let check = Shell::cargo("check --quiet --locked --all-features --target-dir").args([target]);
    check.directory(&directory).run()?;
    let tree = Shell::cargo("tree --locked --all-features --edges normal --depth 1 --prefix none");
    print!("{}", tree.directory(&directory).output()?);
    if !excepted.features.is_empty() {
        println!("not checked: {}", excepted.features.join(", "));
    }
    Ok(())
}

/// The features that a manifest lists as `except` below `package.metadata.lowest`: their own dependencies need newer versions of what
/// the rest of the library needs, and the lowest versions are resolved for all features at once.
struct Excepted {
    features: Vec<String>,
    /// The dependencies that only these features enable.
    dependencies: Vec<String>,
}

impl Excepted {
    fn of(library: &Package) -> Result<Self> {
        let features: Vec<_> = list(&library.manifest("metadata")["lowest"]["except"]).map(text).collect();
        if let Some(unknown) = features.iter().find(|feature| !library.features.contains(feature)) {
            return Err(format!("{}: [package.metadata.lowest] names no feature: {unknown}", library.name).into());
        }
        let of =
            |feature: &String| list(&library.manifest("features")[feature]).filter_map(enabled).collect::<Vec<_>>();
        let others = library.features.iter().filter(|feature| !features.contains(feature));
        let shared: Vec<_> = others.flat_map(of).collect();
        let dependencies =
            features.iter().flat_map(of).filter(|name| !shared.contains(name)).map(str::to_owned).collect();
        Ok(Self { dependencies, features })
    }

    /// Returns a manifest of a package, as cargo writes it, without these features and dependencies.
    fn removed_from(&self, manifest: &str) -> String {
        let (mut table, mut keep) = ("", true);
        let lines = manifest.lines().filter(|line| {
            if line.starts_with('[') {
                table = line.trim_start_matches('[').trim_end_matches(']');
                let dependency = table.strip_prefix("dependencies.").map(|rest| rest.split('.').next().unwrap_or(rest));
                keep = !dependency.is_some_and(|name| self.dependencies.iter().any(|removed| removed == name));
            } else if table == "features" {
                // An array of several lines ends with a bracket.
                if let Some((feature, _)) = line.split_once(" = ") {
                    keep = !self.features.iter().any(|removed| removed == feature);
                }
            }
            keep
        });
        lines.flat_map(|line| [line, "\n"]).collect()
    }
}

/// Returns the dependency that an entry of a feature enables.
fn enabled(entry: &Value) -> Option<&str> {
    entry.as_str()?.strip_prefix("dep:")
}

/// Returns a manifest without the tables that tests, benchmarks and examples alone have: the lowest versions of what they need
/// say nothing about the library.
fn without_development(manifest: &str) -> String {
    let mut keep = true;
    let lines = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            keep = !["[dev-dependencies", "[[test]]", "[[bench]]", "[[example]]"]
                .iter()
                .any(|head| line.starts_with(head));
        }
        keep
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manifest_without_development_has_no_dependencies_and_targets_of_tests() {
        let manifest = "[package]\nname = \"a\"\n\n[dev-dependencies.b]\nversion = \"1\"\n\n[[test]]\nname = \"c\"\n\n\
                        [dependencies.d]\nversion = \"2\"\n";
        assert_eq!(without_development(manifest), "[package]\nname = \"a\"\n\n[dependencies.d]\nversion = \"2\"\n");
    }

    #[test]
    fn an_excepted_feature_is_removed_with_the_dependencies_that_only_it_has() {
        let excepted = Excepted::of(&Package::from(&json!({
            "name": "a",
            "features": { "new": ["dep:only", "dep:both"], "old": ["dep:both"] },
            "metadata": { "lowest": { "except": ["new"] } },
        })));
        let manifest = "[features]\nnew = [\n    \"dep:only\",\n    \"dep:both\",\n]\nold = [\"dep:both\"]\n\n\
                        [dependencies.both]\nversion = \"1\"\n\n[dependencies.only]\nversion = \"2\"\n";
        assert_eq!(
            excepted.unwrap().removed_from(manifest),
            "[features]\nold = [\"dep:both\"]\n\n[dependencies.both]\nversion = \"1\"\n\n"
        );
    }

    #[test]
    fn an_exception_for_a_feature_that_does_not_exist_is_an_error() {
        let package = Package::from(&json!({ "name": "a", "metadata": { "lowest": { "except": ["new"] } } }));
        let error = Excepted::of(&package).err().unwrap();
        assert_eq!(error.to_string(), "a: [package.metadata.lowest] names no feature: new");
    }
}
