//! The packages of the published crates, as `cargo package` writes them.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::shell::Shell;
use crate::workspace::{Package, Workspace, text};

/// Unpacks the packages of all libraries into a directory, each into a subdirectory [named](name_and_version) for it.
pub(crate) fn unpack(workspace: &Workspace, directory: &Path) -> Result {
    for package in workspace.published().filter(|package| package.is_library()) {
        Shell::new("tar").args(["-xzf".as_ref(), archive(workspace, package).as_path()]).directory(directory).run()?;
    }
    Ok(())
}

/// Returns a table for a manifest that takes those libraries for which `is_patched` returns true from the subdirectories of
/// `prefix`.
pub(crate) fn patches(workspace: &Workspace, prefix: &str, is_patched: impl Fn(&Package) -> bool) -> String {
    let libraries = workspace.published().filter(|package| package.is_library() && is_patched(package));
    let line =
        |package: &Package| format!("{} = {{ path = \"{prefix}{}\" }}\n", package.name, name_and_version(package));
    ["\n[patch.crates-io]\n".to_owned()].into_iter().chain(libraries.map(line)).collect()
}

/// Returns the path of a package.
pub(crate) fn archive(workspace: &Workspace, package: &Package) -> PathBuf {
    workspace.target_directory.join("package").join(format!("{}.crate", name_and_version(package)))
}

pub(crate) fn name_and_version(package: &Package) -> String {
    format!("{}-{}", package.name, text(package.manifest("version")))
}
