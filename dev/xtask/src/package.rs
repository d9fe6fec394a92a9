//! `cargo xtask package`: builds the package of every published crate, checks what is in it, and uses the packages in a
//! program.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::files::{emptied, root};
use crate::release::check::without_repository;
use crate::shell::{Result, Shell};
use crate::workspace::{Package, Workspace, target_directory};

const USAGE: &str = "\
cargo xtask package [OPTIONS]

  --release      refuse while the address of the repository is unknown, which a release needs
  --allow-dirty  package uncommitted changes
  --no-verify    do not build each package alone, which takes minutes; the program still builds the libraries
";

pub(crate) fn run(arguments: &[OsString]) -> Result {
    let (mut options, mut is_release) = (Vec::new(), false);
    for argument in arguments {
        match argument.to_str() {
            Some("--release") => is_release = true,
            Some(option @ ("--allow-dirty" | "--no-verify")) => options.push(option),
            _ => return Err(format!("unknown argument `{}`\n\n{USAGE}", argument.display()).into()),
        }
    }
    let workspace = Workspace::here()?;
    if let (true, Some(problem)) = (is_release, without_repository(&workspace)) {
        return Err(problem.into());
    }
    for package in workspace.published() {
        check_files(package)?;
    }
    // Builds each package from its own files, and the packages that it needs.
    pack(workspace.published(), &options)?;
    use_packages(&workspace)?;
    println!("{:<18}{:>7}{:>10}", "package", "files", "KiB");
    for package in workspace.published() {
        let kib = fs::metadata(archive(&workspace, package))?.len() as f64 / 1024.0;
        println!("{:<18}{:>7}{kib:>10.1}", package.name, files(package)?.len());
    }
    Ok(())
}

/// Files of every package. The last three are links to files of the workspace.
const DOCUMENTS: [&str; 5] = ["Cargo.toml", "README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Files that cargo adds.
const GENERATED: [&str; 3] = ["Cargo.toml.orig", "Cargo.lock", ".cargo_vcs_info.json"];

/// # Errors
///
/// If the package lacks a document, or has a file that is neither a document nor a source or an example: tests need
/// stagger-kit, which is not published.
fn check_files(package: &Package) -> Result {
    for name in &DOCUMENTS[2..] {
        // Without `core.symlinks`, git writes a link as a file with the path of its target: on Windows, for example.
        if fs::read(package.directory().join(name))? != fs::read(root().join(name))? {
            let advice = "check out again with `git config core.symlinks true`";
            return Err(format!("{}/{name} is not a link to {name} of the workspace; {advice}", package.name).into());
        }
    }
    match unexpected(&files(package)?) {
        differences if differences.is_empty() => Ok(()),
        differences => {
            Err(format!("{}: {}; see `include` in its manifest", package.name, differences.join(", ")).into())
        }
    }
}

/// Returns the paths in a package.
fn files(package: &Package) -> Result<Vec<String>> {
    let list = Shell::cargo("package --quiet --list --allow-dirty --package").args([&package.name]).output()?;
    // Cargo separates with `\` on Windows.
    Ok(list.lines().map(|line| line.replace('\\', "/")).collect())
}

/// Says which files a package should have and has not, or the other way round.
fn unexpected(files: &[String]) -> Vec<String> {
    let mut differences = Vec::new();
    for name in DOCUMENTS {
        if files.iter().all(|file| file != name) {
            differences.push(format!("no {name}"));
        }
    }
    for file in files {
        let is_code = file.starts_with("src/") || file.starts_with("examples/");
        if !is_code && !DOCUMENTS.contains(&file.as_str()) && !GENERATED.contains(&file.as_str()) {
            differences.push(format!("{file} has no place in a package"));
        }
    }
    differences
}

/// Lets cargo write the packages.
pub(crate) fn pack<'a>(packages: impl Iterator<Item = &'a Package>, options: &[&str]) -> Result {
    let names = packages.flat_map(|package| ["--package", &package.name]);
    Shell::cargo("package --quiet").args(names).args(options).run()
}

/// A program that has nothing but the packages, and names them by version: what a user has who depends on a release.
const PROGRAM: &str = "dev/xtask/consumer";

/// Unpacks the packages into a directory outside the workspace, and builds and runs the program there.
fn use_packages(workspace: &Workspace) -> Result {
    let directory = std::env::temp_dir().join(format!("stagger-consumer-{}", std::process::id()));
    emptied(&directory)?;
    fs::create_dir_all(directory.join("src"))?;
    fs::copy(root().join(PROGRAM).join("src/main.rs"), directory.join("src/main.rs"))?;
    // The versions that the tests have used.
    fs::copy(root().join("Cargo.lock"), directory.join("Cargo.lock"))?;
    let manifest = fs::read_to_string(root().join(PROGRAM).join("Cargo.toml"))?;
    unpack(workspace, &directory)?;
    fs::write(directory.join("Cargo.toml"), manifest + &patches(workspace, "", |_| true))?;
    let run = Shell::cargo("run --quiet --target-dir").args([target_directory("consumer")?]);
    let result = run.directory(&directory).run();
    fs::remove_dir_all(&directory)?;
    result
}

/// Unpacks the packages of all libraries into a directory, each into a subdirectory [named](name_and_version) for it.
pub(crate) fn unpack(workspace: &Workspace, directory: &Path) -> Result {
    for package in workspace.libraries() {
        Shell::new("tar").args(["-xzf".as_ref(), archive(workspace, package).as_path()]).directory(directory).run()?;
    }
    Ok(())
}

/// Returns a table for a manifest that takes those libraries for which `is_patched` returns true from the
/// subdirectories of
/// `prefix`.
pub(crate) fn patches(workspace: &Workspace, prefix: &str, is_patched: impl Fn(&Package) -> bool) -> String {
    let mut table = "\n[patch.crates-io]\n".to_owned();
    for package in workspace.libraries().filter(|package| is_patched(package)) {
        table += &format!("{} = {{ path = \"{prefix}{}\" }}\n", package.name, name_and_version(package));
    }
    table
}

fn archive(workspace: &Workspace, package: &Package) -> PathBuf {
    workspace.target_directory.join("package").join(format!("{}.crate", name_and_version(package)))
}

pub(crate) fn name_and_version(package: &Package) -> String {
    format!("{}-{}", package.name, package.version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::text;

    #[test]
    fn a_file_that_is_missing_or_unexpected_in_a_package_is_named() {
        let files = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let complete = [&DOCUMENTS[..], &["Cargo.lock", "src/a/b.lua", "examples/c.rs"]].concat();
        assert_eq!(unexpected(&files(&complete)), [""; 0]);
        let other = [&DOCUMENTS[1..], &["tests/a.rs", "key.pem"]].concat();
        assert_eq!(
            unexpected(&files(&other)),
            ["no Cargo.toml", "tests/a.rs has no place in a package", "key.pem has no place in a package"]
        );
    }

    #[test]
    fn every_package_has_its_documents_and_no_tests() {
        for package in Workspace::here().unwrap().published() {
            check_files(package).unwrap();
        }
    }

    /// The registry refuses a package without a description or a license, and more than five keywords or categories.
    #[test]
    fn the_published_crates_have_complete_metadata() {
        for package in Workspace::here().unwrap().published() {
            for key in ["description", "license", "readme", "documentation"] {
                let is_needed = key != "documentation" || package.is_library();
                assert!(!is_needed || !text(package.manifest(key)).is_empty(), "{}: no {key}", package.name);
            }
            for key in ["keywords", "categories"] {
                let count = package.manifest(key).as_array().map_or(0, Vec::len);
                assert!((1..=5).contains(&count), "{}: {count} {key}", package.name);
            }
        }
    }
}
