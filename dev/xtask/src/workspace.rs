//! The packages of the workspace, from `cargo metadata`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::shell::{Result, Shell};

/// The packages of one manifest, as `cargo metadata` describes them.
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
    /// The table `[workspace.metadata]`.
    pub(crate) metadata: Value,
}

pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) is_published: bool,
    pub(crate) features: Vec<String>,
    pub(crate) dependencies: Vec<String>,
    /// The keys of the manifest, as `cargo metadata` names them.
    manifest: Value,
    /// Names by kind: `lib`, `bin`, `example`, `test`.
    targets: BTreeMap<String, Vec<String>>,
}

impl Workspace {
    pub(crate) fn here() -> Result<Self> {
        Self::at("Cargo.toml")
    }

    pub(crate) fn at(manifest: &str) -> Result<Self> {
        let shell = Shell::cargo("metadata --no-deps --format-version 1 --manifest-path").args([manifest]);
        let metadata: Value = serde_json::from_str(&shell.output()?)?;
        Ok(Self {
            packages: list(&metadata["packages"]).map(Package::from).collect(),
            target_directory: text(&metadata["target_directory"]).into(),
            metadata: metadata["metadata"].clone(),
        })
    }

    /// Returns the packages that are published, in the order of the manifest.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_published)
    }

    /// Returns the published packages that are libraries.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &Package> {
        self.published().filter(|package| package.is_library())
    }
}

/// Returns the arguments that select the whole workspace with every feature of the published packages. Features of
/// other packages stay off: those of the benchmark add two hundred crates that nothing else needs.
pub(crate) fn everything() -> Result<[String; 3]> {
    let mut features = Vec::new();
    for package in Workspace::here()?.published() {
        features.extend(package.features.iter().map(|feature| format!("{}/{feature}", package.name)));
    }
    Ok(["--workspace".to_owned(), "--features".to_owned(), features.join(",")])
}

impl Package {
    /// Returns the value of `key` in `cargo metadata`, which is null if the manifest does not have it.
    pub(crate) fn manifest(&self, key: &str) -> &Value {
        &self.manifest[key]
    }

    /// Returns the directory of the manifest.
    pub(crate) fn directory(&self) -> PathBuf {
        let manifest = PathBuf::from(text(&self.manifest["manifest_path"]));
        manifest.parent().map_or_else(PathBuf::new, Path::to_path_buf)
    }

    pub(crate) fn is_library(&self) -> bool {
        !self.targets("lib").is_empty()
    }

    pub(crate) fn targets(&self, kind: &str) -> &[String] {
        self.targets.get(kind).map_or(&[], Vec::as_slice)
    }
}

impl From<&Value> for Package {
    fn from(package: &Value) -> Self {
        let mut targets = BTreeMap::<_, Vec<_>>::new();
        for target in list(&package["targets"]) {
            for kind in list(&target["kind"]) {
                targets.entry(text(kind)).or_default().push(text(&target["name"]));
            }
        }
        Self {
            name: text(&package["name"]),
            version: text(&package["version"]),
            // `publish = false` is an empty list of registries; without the key, the value is null.
            is_published: package["publish"].is_null(),
            features: package["features"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect(),
            dependencies: list(&package["dependencies"]).map(|dependency| text(&dependency["name"])).collect(),
            manifest: package.clone(),
            targets,
        }
    }
}

/// Returns a target directory for builds with other flags, so that they do not invalidate the main one.
pub(crate) fn target_directory(name: &str) -> Result<PathBuf> {
    Ok(Workspace::here()?.target_directory.join(name))
}

/// Returns the string, or an empty one if the value is missing.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
