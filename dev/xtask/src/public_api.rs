//! Compares the public interface of each published library with a snapshot in the repository.

use std::collections::BTreeSet;
use std::fs;

use crate::Result;
use crate::rustdoc::Rustdoc;
use crate::workspace::{Workspace, root};

/// The directory of the snapshots, one file per library, so that a change of an interface shows up in a diff.
const SNAPSHOTS: &str = "docs/public-api";

/// The library that most users import from.
const FACADE: &str = "stagger";

/// The limit for the names in the root of [`FACADE`]. Others belong into a module.
const ROOT_NAMES: usize = 60;

/// Compares each interface with its snapshot, prints the lines that differ, and returns a summary.
///
/// # Errors
///
/// If an interface differs, or if the root of [`FACADE`] has more than [`ROOT_NAMES`] names.
pub(crate) fn check() -> Result<String> {
    let libraries = libraries()?;
    let mut changed = Vec::new();
    for (name, rustdoc) in &libraries {
        let interface = interface(rustdoc)?;
        let snapshot = fs::read_to_string(root().join(SNAPSHOTS).join(format!("{name}.txt"))).unwrap_or_default();
        if snapshot != interface {
            println!("{name} differs from {SNAPSHOTS}/{name}.txt:\n{}", diff(&snapshot, &interface));
            changed.push(name.as_str());
        }
    }
    if !changed.is_empty() {
        let names = changed.join(", ");
        let advice = "if intended: cargo xtask public-api --bless";
        return Err(format!("the interface differs from {SNAPSHOTS}: {names}; {advice}").into());
    }
    let names = root_names(FACADE, &libraries);
    if names.len() > ROOT_NAMES {
        println!("{}", names.iter().cloned().collect::<Vec<_>>().join("\n"));
        return Err(format!("the root of {FACADE} has {} names, more than {ROOT_NAMES}", names.len()).into());
    }
    Ok(format!("{} libraries; {} names in the root of {FACADE}", libraries.len(), names.len()))
}

/// Writes the snapshots.
pub(crate) fn bless() -> Result {
    let directory = root().join(SNAPSHOTS);
    fs::create_dir_all(&directory)?;
    for (name, rustdoc) in libraries()? {
        fs::write(directory.join(format!("{name}.txt")), interface(&rustdoc)?)?;
    }
    Ok(())
}

/// Returns the name and the rustdoc JSON of each published library.
fn libraries() -> Result<Vec<(String, Rustdoc)>> {
    let workspace = Workspace::here()?;
    let libraries = workspace.published().filter(|package| package.is_library());
    libraries.map(|package| Ok((package.name.clone(), Rustdoc::generate(package)?))).collect()
}

/// Returns the names in the root of a library, including those that it re-exports from the other libraries.
fn root_names(name: &str, libraries: &[(String, Rustdoc)]) -> BTreeSet<String> {
    let all: Vec<_> = libraries.iter().map(|(_, rustdoc)| rustdoc).collect();
    let library = libraries.iter().find(|(other, _)| other == name);
    library.map(|(_, rustdoc)| rustdoc.root_names(&all)).unwrap_or_default()
}

/// Renders an interface, an item per line, without the items of blanket and auto trait implementations. A derived
/// implementation is its `impl` line alone.
fn interface(rustdoc: &Rustdoc) -> Result<String> {
    let builder = public_api::Builder::from_rustdoc_json(rustdoc.path());
    let builder = builder.omit_blanket_impls(true).omit_auto_trait_impls(true);
    let shown = builder.clone().omit_auto_derived_impls(true).build()?.to_string();
    let shown: BTreeSet<_> = shown.lines().collect();
    let all = builder.build()?.to_string();
    // `derive(PartialEq)` also marks the type for the compiler.
    let is_derived = |line: &str| line.starts_with("impl") && !line.contains("::StructuralPartialEq for ");
    let lines = all.lines().filter(|line| shown.contains(line) || is_derived(line));
    Ok(lines.flat_map(|line| [line, "\n"]).collect())
}

/// Returns the lines that occur in only one of the two texts: first those of `old` (`-`), then those of `new` (`+`).
fn diff(old: &str, new: &str) -> String {
    let (before, after): (BTreeSet<_>, BTreeSet<_>) = (old.lines().collect(), new.lines().collect());
    let removed = old.lines().filter(|line| !after.contains(line)).map(|line| format!("-{line}\n"));
    let added = new.lines().filter(|line| !before.contains(line)).map(|line| format!("+{line}\n"));
    removed.chain(added).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_has_the_lines_of_one_side_only() {
        assert_eq!(diff("a\nb\nc\n", "a\nc\nd\n"), "-b\n+d\n");
        assert_eq!(diff("", "a\n"), "+a\n");
        assert_eq!(diff("a\n", "a\n"), "");
    }
}
