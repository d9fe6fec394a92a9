//! The oldest versions that the libraries promise to work with: of Rust, and of their dependencies.

use std::ffi::OsString;
use std::{env, fs};

use crate::files::emptied;
use crate::package::{name_and_version, pack, patches, unpack};
use crate::shell::{Result, Shell};
use crate::workspace::{Package, Workspace, list, target_directory, text};

/// Names an old compiler. A variable of its own, because cargo would build xtask itself with that of `RUSTC`.
const VARIABLE: &str = "STAGGER_MSRV_RUSTC";

/// Where Debian's packages put theirs; the one of rustup comes first in `PATH`.
const DEBIAN: &str = "/usr/bin/rustc";

/// The packages of Debian 12 with Rust 1.85.
const APT: &str =
    "apt-get install --no-install-recommends 'rustc-web=1.85.*' 'libstd-rust-web-dev=1.85.*' 'libstd-rust-web-1.85'";

/// Builds the published packages with the oldest Rust that any of their manifests declares, as far as they promise it:
/// without the packages and the features that need a newer one.
pub(crate) fn msrv(_: &[OsString]) -> Result {
    let workspace = Workspace::here()?;
    let declared = |package: &Package| version(&text(package.manifest("rust_version")));
    let oldest = workspace.published().filter_map(declared).min().ok_or("no manifest has a rust-version")?;
    let compiler = env::var_os(VARIABLE).unwrap_or(DEBIAN.into());
    // "rustc 1.85.0 (4d91de4e4 2025-02-17) (built from a source tarball)"
    let found = Shell::new(&compiler).args(["--version"]).output().unwrap_or_default();
    if found.split_ascii_whitespace().nth(1).and_then(version) != Some(oldest) {
        let (major, minor) = oldest;
        let needs = format!("needs Rust {major}.{minor}, and `{}` is `{}`", compiler.display(), found.trim());
        return Err(format!("{needs}; install Debian's package (`{APT}`), or set {VARIABLE}").into());
    }
    let mut report = String::new();
    for package in workspace.published() {
        if declared(package) > Some(oldest) {
            report += &format!("{:<18}not checked: needs a newer Rust\n", package.name);
            continue;
        }
        let newer = features_that_need_newer(package, oldest);
        let features: Vec<_> =
            package.features.iter().filter(|name| !newer.contains(name)).map(String::as_str).collect();
        // Cargo refuses to build a dependency that declares a newer version.
        let check = Shell::cargo("check --quiet --locked --no-default-features --package").args([&package.name]);
        let check = check.args(["--features", &features.join(",")]).args(["--target-dir"]);
        check.args([target_directory("msrv")?]).env("RUSTC", &compiler).run()?;
        report += &format!("{:<18}builds", package.name);
        if !newer.is_empty() {
            report += &format!("; not checked: {}", newer.join(", "));
        }
        report += "\n";
    }
    print!("{report}");
    Ok(())
}

/// Returns the major and minor number of a version of Rust.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Returns the features in `[package.metadata.rust-version]` whose version is newer.
fn features_that_need_newer(package: &Package, compiler: (u32, u32)) -> Vec<String> {
    let table = package.manifest("metadata")["rust-version"].as_object();
    let listed = table.into_iter().flatten();
    listed.filter(|(_, needs)| version(&text(needs)) > Some(compiler)).map(|(feature, _)| feature.clone()).collect()
}

/// Checks each published library, with all features, against the lowest versions of its own dependencies. Arguments
/// name the libraries to check; without any, all are.
///
/// Each library is resolved alone: in one workspace, the lowest version of one would conflict with that of another.
/// cargo-minimal-versions cannot do this before the libraries are in a registry, where it looks for those that a
/// library depends on.
pub(crate) fn lowest(arguments: &[OsString]) -> Result {
    let workspace = Workspace::here()?;
    let sources = target_directory("lowest/crates")?;
    emptied(&sources)?;
    // The manifest of a package is complete, and has no dependency by path.
    pack(workspace.libraries(), &["--no-verify", "--allow-dirty"])?;
    unpack(&workspace, &sources)?;
    let mut checked = 0;
    for library in workspace.libraries() {
        if !arguments.is_empty() && arguments.iter().all(|name| *name != *library.name) {
            continue;
        }
        let directory = sources.join(name_and_version(library));
        let manifest = directory.join("Cargo.toml");
        let excepted: Vec<_> = list(&library.manifest("metadata")["lowest"]["except"]).map(text).collect();
        let others = patches(&workspace, "../", |other| other.name != library.name);
        let reduced = reduced(&fs::read_to_string(&manifest)?, &excepted)?;
        fs::write(&manifest, format!("{reduced}\n[workspace]\n{others}"))?;
        // The packaged one has the versions that the package was tested with. The option is unstable; a stable cargo
        // accepts it with this variable.
        let _ = fs::remove_file(directory.join("Cargo.lock"));
        let resolve = Shell::cargo("-Z direct-minimal-versions generate-lockfile --quiet").directory(&directory);
        resolve.env("RUSTC_BOOTSTRAP", "1").run()?;
        let check = Shell::cargo("check --quiet --locked --all-features --target-dir").directory(&directory);
        check.args([target_directory("lowest/target")?]).run()?;
        let tree = Shell::cargo("tree --locked --all-features --edges normal --depth 1 --prefix none");
        print!("{}", tree.directory(&directory).output()?);
        if !excepted.is_empty() {
            println!("not checked: {}", excepted.join(", "));
        }
        checked += 1;
    }
    if checked < arguments.len() {
        return Err("an argument is not the name of a published library".into());
    }
    println!("{checked} libraries build with the lowest versions of their dependencies");
    Ok(())
}

/// Returns a manifest without what tests, benchmarks and examples need, and without some features and the dependencies
/// that only these enable.
///
/// The features are those of `[package.metadata.lowest]`: their own dependencies need newer versions of what the rest
/// of the library needs, and the lowest versions are resolved for all features at once.
fn reduced(manifest: &str, features: &[String]) -> Result<String> {
    let mut manifest: toml::Table = manifest.parse()?;
    for table in ["dev-dependencies", "test", "bench", "example"] {
        manifest.remove(table);
    }
    let mut removed = Vec::new();
    let mut kept = String::new();
    if let Some(table) = manifest.get_mut("features").and_then(toml::Value::as_table_mut) {
        for feature in features {
            removed.push(table.remove(feature).ok_or_else(|| format!("there is no feature {feature} to except"))?);
        }
        kept = table.to_string();
    }
    if let Some(dependencies) = manifest.get_mut("dependencies").and_then(toml::Value::as_table_mut) {
        for entry in removed.iter().filter_map(toml::Value::as_array).flatten().filter_map(toml::Value::as_str) {
            if let Some(dependency) = entry.strip_prefix("dep:")
                && !kept.contains(&format!("\"{entry}\""))
            {
                dependencies.remove(dependency);
            }
        }
    }
    Ok(manifest.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_feature_that_needs_a_newer_compiler_is_named() {
        let table = json!({ "tonic": "1.88", "sse": "1.84.1" });
        let package = Package::from(&json!({ "name": "a", "metadata": { "rust-version": table } }));
        assert_eq!(features_that_need_newer(&package, (1, 85)), ["tonic"]);
    }

    #[test]
    fn features_that_need_a_newer_compiler_exist() {
        for package in Workspace::here().unwrap().published() {
            for feature in features_that_need_newer(package, (0, 0)) {
                assert!(package.features.contains(&feature), "{} has no feature {feature}", package.name);
            }
        }
    }

    #[test]
    fn every_feature_whose_dependency_needs_a_newer_compiler_is_listed_with_its_version() {
        let metadata = Shell::cargo("metadata --locked --format-version 1").output().unwrap();
        let metadata: Value = serde_json::from_str(&metadata).unwrap();
        let needed = |name: &str| {
            let packages = list(&metadata["packages"]).filter(|package| package["name"] == name);
            packages.map(|package| text(&package["rust_version"])).min().unwrap_or_default()
        };
        for package in Workspace::here().unwrap().published() {
            let Some(declared) = version(&text(package.manifest("rust_version"))) else { continue };
            for (feature, enabled) in package.manifest("features").as_object().into_iter().flatten() {
                for dependency in list(enabled).filter_map(|enabled| enabled.as_str()?.strip_prefix("dep:")) {
                    let needed = needed(dependency);
                    if version(&needed) > Some(declared) {
                        let listed = text(&package.manifest("metadata")["rust-version"][feature]);
                        assert_eq!(listed, needed, "feature {feature} of {}, because of {dependency}", package.name);
                    }
                }
            }
        }
    }

    #[test]
    fn a_reduced_manifest_has_nothing_of_tests_and_of_excepted_features() {
        let manifest = "[package]\nname = \"a\"\n[features]\nnew = [\"dep:only\", \"dep:both\"]\nold = [\"dep:both\"]\n\
                        [dependencies]\nboth = \"1\"\nonly = \"2\"\n\
                        [dev-dependencies]\nb = \"1\"\n[[test]]\nname = \"c\"\n";
        let want = "[package]\nname = \"a\"\n\n[features]\nold = [\"dep:both\"]\n\n[dependencies]\nboth = \"1\"\n";
        let reduced =
            |features: &[&str]| reduced(manifest, &features.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let sorted = |text: &str| text.parse::<toml::Table>().unwrap();
        assert_eq!(sorted(&reduced(&["new"]).unwrap()), sorted(want));
        assert_eq!(reduced(&["newer"]).unwrap_err().to_string(), "there is no feature newer to except");
    }
}
