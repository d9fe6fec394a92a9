//! The oldest versions that the libraries promise to work with: of Rust, and of their dependencies.

use core::fmt;
use std::ffi::OsString;
use std::path::Path;
use std::{env, fs};

use serde_json::Value;

use crate::error::Result;
use crate::package;
use crate::shell::Shell;
use crate::workspace::{Package, Workspace, list, target_directory, text};

/// Names an old compiler. A variable of its own, because cargo would build xtask itself with that of `RUSTC`.
const VARIABLE: &str = "STAGGER_MSRV_RUSTC";

/// Where Debian's packages put theirs; the one of rustup comes first in `PATH`.
const DEBIAN: &str = "/usr/bin/rustc";

/// The packages of Debian 12 with Rust 1.85.
const APT: &str =
    "apt-get install --no-install-recommends 'rustc-web=1.85.*' 'libstd-rust-web-dev=1.85.*' 'libstd-rust-web-1.85'";

pub(crate) fn msrv(_: &[OsString]) -> Result {
    let compiler = env::var_os(VARIABLE).unwrap_or_else(|| DEBIAN.into());
    let workspace = Workspace::here()?;
    let versions = workspace.published().filter_map(|package| Version::parse(package.rust_version.as_deref()?));
    let lowest = versions.min().ok_or("no manifest has a rust-version")?;
    let found = Version::of(&compiler);
    if found != Some(lowest) {
        let found = found.map_or("is not there".to_owned(), |found| format!("is Rust {found}"));
        return Err(format!(
            "needs Rust {lowest}, but {} {found}; install Debian's package (`{APT}`), or set {VARIABLE} to another compiler",
            compiler.display(),
        )
        .into());
    }
    let directory = target_directory("msrv")?;
    let mut report = String::new();
    for package in workspace.published() {
        let plan = Plan::of(package, lowest)?;
        if let Some(arguments) = plan.arguments() {
            // Cargo refuses to build a dependency that declares a newer version.
            Shell::cargo("check --quiet --locked --package")
                .args([&package.name])
                .args(arguments)
                .args(["--target-dir".as_ref(), directory.as_path()])
                .env("RUSTC", &compiler)
                .run()?;
        }
        report += &plan.line(&package.name);
    }
    print!("{report}");
    Ok(())
}

/// A version of Rust, without the patch level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.');
        Some(Self { major: numbers.next()?.parse().ok()?, minor: numbers.next()?.parse().ok()? })
    }

    /// Returns the version of a compiler, unless it is missing.
    pub(crate) fn of(compiler: impl AsRef<Path>) -> Option<Self> {
        let shell = compiler.as_ref().is_file().then(|| Shell::new(compiler.as_ref()).args(["--version"]))?;
        // "rustc 1.85.0 (4d91de4e4 2025-02-17) (built from a source tarball)"
        Self::parse(shell.output().ok()?.split_ascii_whitespace().nth(1)?)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What a compiler can build of a package.
pub(crate) struct Plan {
    /// The features, or `None` if the package as a whole needs a newer version.
    features: Option<Vec<String>>,
    /// What needs a newer version, for the report.
    newer: Vec<String>,
}

impl Plan {
    /// Reads `rust-version`, and the features that need more from `package.metadata.rust-version`.
    pub(crate) fn of(package: &Package, compiler: Version) -> Result<Self> {
        let declared = package.rust_version.as_deref().unwrap_or_default();
        if Version::parse(declared).is_none_or(|declared| declared > compiler) {
            return Ok(Self { features: None, newer: vec![declared.to_owned()] });
        }
        let table = &package.manifest("metadata")["rust-version"];
        let listed: Vec<_> = table.as_object().into_iter().flatten().collect();
        if let Some((unknown, _)) = listed.iter().find(|(feature, _)| !package.features.contains(feature)) {
            return Err(format!("{}: [package.metadata.rust-version] names no feature: {unknown}", package.name).into());
        }
        let newer: Vec<_> = listed
            .into_iter()
            .filter(|(_, version)| Version::parse(&text(version)).is_none_or(|version| version > compiler))
            .collect();
        let is_old = |feature: &&String| newer.iter().all(|(name, _)| name != feature);
        Ok(Self {
            features: Some(package.features.iter().filter(is_old).cloned().collect()),
            newer: newer.into_iter().map(|(feature, version)| format!("{feature} {}", text(version))).collect(),
        })
    }

    /// Returns the arguments with which cargo builds what the compiler can; `None` if that is nothing.
    pub(crate) fn arguments(&self) -> Option<[String; 2]> {
        let features = self.features.as_ref()?;
        Some(["--no-default-features".to_owned(), format!("--features={}", features.join(","))])
    }

    /// Returns a line for the report.
    pub(crate) fn line(&self, name: &str) -> String {
        match &self.features {
            None => format!("{name:<18}not checked: needs Rust {}\n", self.newer.join(", ")),
            Some(features) => {
                let features = if features.is_empty() { "no features".to_owned() } else { features.join(", ") };
                let newer = if self.newer.is_empty() {
                    String::new()
                } else {
                    format!("; not checked: {}", self.newer.join(", "))
                };
                format!("{name:<18}builds: {features}{newer}\n")
            }
        }
    }
}

/// Checks each published library, with all features, against the lowest versions of its own dependencies. Arguments name the
/// libraries to check; without any, all are.
///
/// Each library is resolved alone: in one workspace, its bounds would be raised by those of the others.
pub(crate) fn lowest(arguments: &[OsString]) -> Result {
    let workspace = Workspace::here()?;
    let is_named = |package: &&Package| arguments.is_empty() || arguments.iter().any(|name| *name == *package.name);
    let libraries: Vec<_> = workspace.published().filter(|package| package.is_library()).filter(is_named).collect();
    if libraries.len() < arguments.len() {
        return Err("an argument is not the name of a published library".into());
    }
    let directory = target_directory("lowest")?;
    let sources = directory.join("crates");
    if sources.exists() {
        fs::remove_dir_all(&sources)?;
    }
    fs::create_dir_all(&sources)?;
    // The manifest of a package is complete, and has no dependency by path.
    let names = workspace.published().filter(|package| package.is_library()).flat_map(|package| ["-p", &package.name]);
    Shell::cargo("package --quiet --no-verify --allow-dirty").args(names).run()?;
    package::unpack(&workspace, &sources)?;
    for library in &libraries {
        check(library, &workspace, &sources, &directory.join("target"))?;
    }
    println!("{} libraries build with the lowest versions of their dependencies", libraries.len());
    Ok(())
}

fn check(library: &Package, workspace: &Workspace, sources: &Path, target: &Path) -> Result {
    let directory = sources.join(package::name_and_version(library));
    let manifest = directory.join("Cargo.toml");
    let others = package::patches(workspace, "../", |other| other.name != library.name);
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
    use crate::workspace::{Workspace, list};

    const LOWEST: Version = Version { major: 1, minor: 85 };

    fn package(version: &str, features: &[&str], newer: &Value) -> Package {
        let features: serde_json::Map<_, _> = features.iter().map(|name| ((*name).to_owned(), json!([]))).collect();
        Package::from(&json!({
            "name": "a", "rust_version": version, "features": features, "metadata": { "rust-version": newer },
        }))
    }

    #[test]
    fn a_feature_that_needs_a_newer_compiler_is_left_out_and_named() {
        let plan = Plan::of(&package("1.85", &["sse", "tonic"], &json!({ "tonic": "1.88" })), LOWEST).unwrap();
        assert_eq!(plan.features.as_deref(), Some(&["sse".to_owned()][..]));
        assert_eq!(plan.line("a"), "a                 builds: sse; not checked: tonic 1.88\n");
    }

    #[test]
    fn a_package_that_needs_a_newer_compiler_is_named() {
        let plan = Plan::of(&package("1.94", &[], &json!(null)), LOWEST).unwrap();
        assert_eq!(plan.line("a"), "a                 not checked: needs Rust 1.94\n");
    }

    #[test]
    fn an_exception_for_a_feature_that_does_not_exist_is_an_error() {
        let error = Plan::of(&package("1.85", &["sse"], &json!({ "tonik": "1.88" })), LOWEST).err().unwrap();
        assert_eq!(error.to_string(), "a: [package.metadata.rust-version] names no feature: tonik");
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
            let Some(declared) = package.rust_version.as_deref().and_then(Version::parse) else { continue };
            for (feature, enabled) in package.manifest("features").as_object().into_iter().flatten() {
                for dependency in list(enabled).filter_map(|enabled| enabled.as_str()?.strip_prefix("dep:")) {
                    let needed = needed(dependency);
                    if Version::parse(&needed).is_some_and(|needed| needed > declared) {
                        let listed = text(&package.manifest("metadata")["rust-version"][feature]);
                        assert_eq!(listed, needed, "feature {feature} of {}, because of {dependency}", package.name);
                    }
                }
            }
        }
    }

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
    fn an_exception_of_lowest_for_a_feature_that_does_not_exist_is_an_error() {
        let package = Package::from(&json!({ "name": "a", "metadata": { "lowest": { "except": ["new"] } } }));
        let error = Excepted::of(&package).err().unwrap();
        assert_eq!(error.to_string(), "a: [package.metadata.lowest] names no feature: new");
    }
}
