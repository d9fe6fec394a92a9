//! What a compiler can build of the published packages, by the versions that their manifests declare.

use core::fmt;
use std::path::Path;

use crate::Result;
use crate::shell::Shell;
use crate::workspace::{Package, text};

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workspace::{Workspace, list};

    const LOWEST: Version = Version { major: 1, minor: 85 };

    fn package(version: &str, features: &[&str], newer: &serde_json::Value) -> Package {
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
        let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
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
}
