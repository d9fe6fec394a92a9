//! The licenses of the packages that the program is built from: most of them demand that their text goes with a copy.

use core::fmt::Write;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::Result;
use crate::files::entries;
use crate::shell::Shell;
use crate::workspace::{list, text};

/// How the name of a file with a license or a notice begins, in upper case.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// A package that the program contains.
#[derive(Debug)]
struct Package {
    name: String,
    license: String,
    texts: Vec<String>,
}

/// Returns the names, licenses and license texts of all packages of others that the program for `target` contains.
pub(crate) fn notices(target: &str) -> Result<String> {
    let contained = contained(&tree(target)?);
    let metadata = Shell::cargo("metadata --locked --format-version 1 --filter-platform").args([target]).output()?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    // The packages of the workspace have no source.
    let others = list(&metadata["packages"]).filter(|package| package["source"].is_string());
    let mut packages = Vec::new();
    for package in others {
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        if contained.contains(&name) {
            let manifest = text(&package["manifest_path"]);
            let directory = Path::new(&manifest).parent().unwrap_or(Path::new("."));
            packages.push(Package { name, license: text(&package["license"]), texts: texts(directory)? });
        }
    }
    if packages.is_empty() {
        return Err("`cargo tree` and `cargo metadata` have no package in common".into());
    }
    Ok(document(&packages))
}

/// Returns the names and versions of all packages that the program for `target` is built from, with those of the workspace and
/// those that only the compiler runs.
pub(crate) fn sources(target: &str) -> Result<BTreeSet<String>> {
    Ok(names(tree(target)?.lines()))
}

/// Returns what `cargo tree` prints of the program: one package in a line.
fn tree(target: &str) -> Result<String> {
    let tree = Shell::cargo("tree --locked --package stagger-cli --edges normal --prefix none --target");
    tree.args([target]).output()
}

/// Returns the names and versions in the output of `cargo tree`. What only the compiler runs is left out.
fn contained(tree: &str) -> BTreeSet<String> {
    names(tree.lines().filter(|line| !line.contains("(proc-macro)")))
}

fn names<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let names = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
    });
    names.collect()
}

/// Returns the license texts of a package, without differences in white space at their ends.
fn texts(directory: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            texts.push(String::from_utf8_lossy(&fs::read(&path)?).trim().replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}

/// Lists the packages, then each text once with the packages that it belongs to.
fn document(packages: &[Package]) -> String {
    let mut document = String::from("The program contains these packages:\n\n");
    let mut users = BTreeMap::<&str, BTreeSet<&str>>::new();
    let sorted: BTreeMap<_, _> = packages.iter().map(|package| (&package.name, package)).collect();
    for (name, package) in sorted {
        let _ = writeln!(document, "- {name}: {}", package.license);
        for text in &package.texts {
            users.entry(text).or_default().insert(name);
        }
    }
    for (text, names) in users {
        let names: Vec<_> = names.into_iter().collect();
        let _ = write!(document, "\n{}\n\n{}\n\n{text}\n", "-".repeat(80), names.join(", "));
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_the_tree_without_those_that_only_the_compiler_runs() {
        let tree = "stagger-cli v0.1.0 (/a/stagger-cli)\nserde v1.0.229\nserde_derive v1.0.229 (proc-macro)\nserde v1.0.229 (*)\n";
        assert_eq!(contained(tree).into_iter().collect::<Vec<_>>(), ["serde 1.0.229", "stagger-cli 0.1.0"]);
    }

    #[test]
    fn equal_texts_are_printed_once_with_all_their_packages() {
        let package = |name: &str, texts: &[&str]| Package {
            name: name.to_owned(),
            license: "MIT".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        let document = document(&[
            package("b 1.0.0", &["Text."]),
            package("a 2.0.0", &["Text.", "Other."]),
            package("c 0.1.0", &[]),
        ]);
        assert!(
            document.starts_with(
                "The program contains these packages:\n\n- a 2.0.0: MIT\n- b 1.0.0: MIT\n- c 0.1.0: MIT\n"
            )
        );
        assert!(
            document.contains("\na 2.0.0, b 1.0.0\n\nText.\n") && document.contains("\na 2.0.0\n\nOther.\n"),
            "{document}"
        );
        assert_eq!(document.matches("Text.").count(), 1);
    }

    #[test]
    fn license_files_are_found_by_their_usual_names() {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in [("LICENSE-MIT", "MIT\r\nText\n"), ("license.txt", "Two"), ("README.md", "No")] {
            fs::write(directory.path().join(name), content).unwrap();
        }
        fs::create_dir(directory.path().join("LICENSES")).unwrap();
        assert_eq!(texts(directory.path()).unwrap(), ["MIT\nText", "Two"]);
    }
}
