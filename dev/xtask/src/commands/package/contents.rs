//! The files of each package, against the lists in `docs/packages`.

use std::fs;
use std::path::PathBuf;

use crate::Result;
use crate::shell::Shell;
use crate::workspace::{Package, Workspace, root};

const LISTS: &str = "docs/packages";

/// Links to files of the workspace.
const LINKED: [&str; 3] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// # Errors
///
/// If a package has other files than its list, or if a linked file has other contents than the file of the workspace.
pub(super) fn check(workspace: &Workspace) -> Result {
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
pub(super) fn bless(workspace: &Workspace) -> Result {
    fs::create_dir_all(root().join(LISTS))?;
    for package in workspace.published() {
        fs::write(list_of(package), listed(&files(package)?))?;
    }
    Ok(())
}

/// Returns the paths in a package.
pub(super) fn files(package: &Package) -> Result<Vec<String>> {
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
            let advice = "check out again with `git config core.symlinks true`";
            return Err(format!("{}/{name} is not a link to {name} of the workspace; {advice}", package.name).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        check(&Workspace::here().unwrap()).unwrap();
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
