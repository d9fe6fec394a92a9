//! `cargo xtask lowest`: whether the lower bounds of dependencies are true.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::Result;
use crate::crates;
use crate::shell::Shell;
use crate::workspace::{self, Package, Workspace};

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
    fs::write(&manifest, without_development(&fs::read_to_string(&manifest)?) + "\n[workspace]\n" + &others)?;
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
    Ok(())
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
    use super::*;

    #[test]
    fn a_manifest_without_development_has_no_dependencies_and_targets_of_tests() {
        let manifest = "[package]\nname = \"a\"\n\n[dev-dependencies.b]\nversion = \"1\"\n\n[[test]]\nname = \"c\"\n\n\
                        [dependencies.d]\nversion = \"2\"\n";
        assert_eq!(without_development(manifest), "[package]\nname = \"a\"\n\n[dependencies.d]\nversion = \"2\"\n");
    }
}
