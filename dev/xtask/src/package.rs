//! `cargo xtask package`: builds the package of every published crate, checks what is in it, and uses the packages in a
//! program.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use lexopt::{Arg, Parser};

use crate::error::Result;
use crate::release::check::without_repository;
use crate::shell::Shell;
use crate::workspace::{Package, Workspace, root, target_directory, text};

const USAGE: &str = "\
cargo xtask package [OPTIONS]

  --bless        rewrite the lists of files in docs/packages, and stop
  --release      refuse if anything is missing that a release needs
  --allow-dirty  package uncommitted changes
  --no-verify    do not build each package alone, which takes minutes; the program still builds the libraries
";

pub(crate) fn run(arguments: &[OsString]) -> Result {
    let (mut bless, mut options, mut purpose) = (false, Vec::new(), Purpose::Check);
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => {
                print!("{USAGE}");
                return Ok(());
            }
            Arg::Long("bless") => bless = true,
            Arg::Long("release") => purpose = Purpose::Release,
            Arg::Long(option @ ("allow-dirty" | "no-verify")) => options.push(format!("--{option}")),
            other => return Err(other.unexpected().into()),
        }
    }
    let workspace = Workspace::here()?;
    if bless {
        return bless_contents(&workspace);
    }
    check_metadata(&workspace, purpose)?;
    check_contents(&workspace)?;
    let names = workspace.published().flat_map(|package| ["--package", &package.name]);
    // Builds each package from its own files, and the packages that it needs.
    Shell::cargo("package --quiet").args(names).args(options).run()?;
    use_packages(&workspace)?;
    print!("{}", table(&workspace)?);
    Ok(())
}

/// Returns the size of each package.
fn table(workspace: &Workspace) -> Result<String> {
    let mut lines = format!("{:<18}{:>7}{:>10}\n", "package", "files", "KiB");
    for package in workspace.published() {
        let length = fs::metadata(archive(workspace, package))?.len();
        let files = files(package)?.len();
        lines += &format!("{:<18}{files:>7}{:>10.1}\n", package.name, length as f64 / 1024.0);
    }
    Ok(lines)
}

/// What the packages are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Check,
    Release,
}

/// # Errors
///
/// Lists everything that is missing, in all crates.
fn check_metadata(workspace: &Workspace, purpose: Purpose) -> Result {
    let packages: Vec<_> = workspace.published().collect();
    let problems = problems(&packages, purpose);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

fn problems(packages: &[&Package], purpose: Purpose) -> Vec<String> {
    let mut problems: Vec<_> = packages.iter().flat_map(|package| problems_of(package)).collect();
    if purpose == Purpose::Release {
        problems.extend(without_repository(packages.iter().map(|package| text(package.manifest("repository")))));
    }
    problems
}

/// Returns what is wrong with the manifest of one crate.
fn problems_of(package: &Package) -> Vec<String> {
    let mut required = vec!["description", "license", "readme"];
    if package.is_library() {
        required.push("documentation");
    }
    let is_empty = |key: &&str| text(package.manifest(key)).is_empty();
    let missing = required.into_iter().filter(is_empty).map(|key| format!("{}: no {key}", package.name));
    // The registry accepts at most five of each.
    let lists = ["keywords", "categories"].into_iter().filter_map(|key| {
        let count = package.manifest(key).as_array().map_or(0, Vec::len);
        (!(1..=5).contains(&count)).then(|| format!("{}: {count} {key}; expected one to five", package.name))
    });
    missing.chain(lists).collect()
}

const LISTS: &str = "docs/packages";

/// Links to files of the workspace.
const LINKED: [&str; 3] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// # Errors
///
/// If a package has other files than its list, or if a linked file has other contents than the file of the workspace.
fn check_contents(workspace: &Workspace) -> Result {
    for package in workspace.published() {
        check_links(package)?;
        let (path, actual) = (list_of(package), listed(&files(package)?));
        let expected = fs::read_to_string(&path).unwrap_or_default();
        if actual != expected {
            let changed: Vec<_> = changes(&expected, &actual).collect();
            let advice = "if that is on purpose: cargo xtask package --bless";
            return Err(format!("{} has other files:\n{}\n{advice}", package.name, changed.join("\n")).into());
        }
    }
    Ok(())
}

/// Writes the lists.
fn bless_contents(workspace: &Workspace) -> Result {
    fs::create_dir_all(root().join(LISTS))?;
    for package in workspace.published() {
        fs::write(list_of(package), listed(&files(package)?))?;
    }
    Ok(())
}

/// Returns the paths in a package.
fn files(package: &Package) -> Result<Vec<String>> {
    let list = Shell::cargo("package --quiet --list --allow-dirty --package").args([&package.name]).output()?;
    // Cargo separates with `\` on Windows.
    Ok(list.lines().map(|line| line.replace('\\', "/")).collect())
}

/// Returns a package's list: every file but the modules below `src`, which may come and go.
fn listed(files: &[String]) -> String {
    let is_module = |path: &str| path.starts_with("src/") && path.ends_with(".rs");
    files.iter().filter(|path| !is_module(path)).flat_map(|path| [path, "\n"]).collect()
}

fn changes<'a>(expected: &'a str, actual: &'a str) -> impl Iterator<Item = String> + 'a {
    let removed = expected.lines().filter(|line| !actual.lines().any(|other| other == *line));
    let added = actual.lines().filter(|line| !expected.lines().any(|other| other == *line));
    removed.map(|line| format!("-{line}")).chain(added.map(|line| format!("+{line}")))
}

fn list_of(package: &Package) -> PathBuf {
    root().join(LISTS).join(format!("{}.txt", package.name))
}

/// # Errors
///
/// If git has written a link as a file with the path of its target, as it does on Windows without `core.symlinks`: the package
/// would have that path for its license.
fn check_links(package: &Package) -> Result {
    for name in LINKED {
        if fs::read(package.directory().join(name))? != fs::read(root().join(name))? {
            let advice = "check_contents out again with `git config core.symlinks true`";
            return Err(format!("{}/{name} is not a link to {name} of the workspace; {advice}", package.name).into());
        }
    }
    Ok(())
}

/// The program, which names the crates by version, as users do.
const PROGRAM: &str = "dev/xtask/consumer";

/// Unpacks the packages into a directory outside the workspace, and builds and runs the program there.
fn use_packages(workspace: &Workspace) -> Result {
    let directory = std::env::temp_dir().join(format!("stagger-consumer-{}", std::process::id()));
    let result = use_packages_in(&directory, workspace);
    fs::remove_dir_all(&directory)?;
    result
}

fn use_packages_in(directory: &Path, workspace: &Workspace) -> Result {
    fs::create_dir_all(directory.join("src"))?;
    fs::copy(root().join(PROGRAM).join("src/main.rs"), directory.join("src/main.rs"))?;
    // The versions that the tests have used.
    fs::copy(root().join("Cargo.lock"), directory.join("Cargo.lock"))?;
    let manifest = fs::read_to_string(root().join(PROGRAM).join("Cargo.toml"))?;
    unpack(workspace, directory)?;
    fs::write(directory.join("Cargo.toml"), manifest + &patches(workspace, "", |_| true))?;
    let target = target_directory("consumer")?;
    Shell::cargo("use_packages --quiet --target-dir").args([target]).directory(directory).run()
}

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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems_after(change: impl FnOnce(&mut Value), purpose: Purpose) -> Vec<String> {
        let mut package = json!({
            "name": "a", "description": "does", "license": "MIT", "readme": "README.md", "repository": "https://a.example",
            "documentation": "https://docs.rs/a", "keywords": ["retry"], "categories": ["algorithms"],
            "targets": [{ "kind": ["lib"], "name": "a" }],
        });
        change(&mut package);
        problems(&[&Package::from(&package)], purpose)
    }

    #[test]
    fn a_complete_manifest_can_be_released() {
        assert_eq!(problems_after(|_| {}, Purpose::Release), Vec::<String>::new());
    }

    #[test]
    fn a_release_is_refused_while_the_address_of_the_repository_is_empty() {
        let empty = |package: &mut Value| package["repository"] = json!("");
        assert_eq!(
            problems_after(empty, Purpose::Release),
            ["the address of the repository is empty; fill in `repository` below `[workspace.package]` in Cargo.toml"]
        );
        assert_eq!(problems_after(empty, Purpose::Check), Vec::<String>::new());
    }

    #[test]
    fn every_missing_key_of_a_manifest_is_named() {
        let bare = |package: &mut Value| *package = json!({ "name": "a", "keywords": ["1", "2", "3", "4", "5", "6"] });
        assert_eq!(
            problems_after(bare, Purpose::Check),
            [
                "a: no description",
                "a: no license",
                "a: no readme",
                "a: 6 keywords; expected one to five",
                "a: 0 categories; expected one to five"
            ]
        );
    }

    #[test]
    fn the_published_crates_have_complete_metadata() {
        check_metadata(&Workspace::here().unwrap(), Purpose::Check).unwrap();
    }

    #[test]
    fn a_package_has_every_file_in_its_list_but_modules() {
        let files = ["Cargo.toml", "src/lib.rs", "src/a/b.rs", "src/a.md", "build.rs"].map(str::to_owned);
        assert_eq!(listed(&files), "Cargo.toml\nsrc/a.md\nbuild.rs\n");
    }

    #[test]
    fn an_unexpected_file_in_a_package_is_named() {
        assert_eq!(changes("a\nb\n", "b\nkey.pem\n").collect::<Vec<_>>(), ["-a", "+key.pem"]);
    }

    #[test]
    fn packages_have_the_files_of_their_lists() {
        check_contents(&Workspace::here().unwrap()).unwrap();
    }

    #[test]
    fn every_package_has_license_readme_and_changelog_and_no_tests() {
        for package in Workspace::here().unwrap().published() {
            let list = fs::read_to_string(list_of(package)).unwrap();
            for name in ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
                assert!(list.lines().any(|line| line == name), "{} has no {name}", package.name);
            }
            assert!(!list.lines().any(|line| line.starts_with("tests/")), "{} has tests", package.name);
        }
    }
}
