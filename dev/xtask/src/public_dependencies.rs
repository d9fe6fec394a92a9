//! Checks that each library whose interface has a snapshot names the dependencies before 1.0 whose types are in it: a
//! new minor version of one is an incompatible release of the library.

use std::collections::BTreeSet;
use std::fs;

use crate::rustdoc::with_snapshot;
use crate::shell::Shell;

/// The section in the documentation of a crate, whose table has a row for each dependency.
const HEADING: &str = "//! # Dependencies before 1.0";

/// Has only private items in the interface: a hidden trait of its macro.
const PRIVATE: &str = "pin-project-lite";

/// Returns the names of the packages of others before 1.0 on which a package depends, each with its version up to the
/// minor number: `futures-core 0.3`.
fn before_one(package: &str) -> BTreeSet<(String, String)> {
    let arguments = format!("tree --locked --all-features --edges normal --prefix none --package {package}");
    let tree = Shell::cargo(&arguments).output().unwrap();
    let packages = tree.lines().filter_map(|line| line.split_once(" v"));
    let early = packages.filter(|(name, version)| version.starts_with("0.") && !is_ours(name) && *name != PRIVATE);
    let minor = |version: &str| version.split(' ').next()?.rsplit_once('.').map(|(minor, _)| minor.to_owned());
    early.filter_map(|(name, version)| Some((name.to_owned(), minor(version)?))).collect()
}

fn is_ours(package: &str) -> bool {
    package == "stagger" || package.starts_with("stagger-")
}

/// Returns whether an interface contains a path that begins with the crate of a package.
fn mentions(interface: &str, package: &str) -> bool {
    let path = format!("{}::", package.replace('-', "_"));
    interface.match_indices(&path).any(|(at, _)| {
        !interface[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':')
    })
}

/// Returns the first cell of each row of the section's table.
fn named(source: &str) -> BTreeSet<&str> {
    let section =
        source.lines().skip_while(|line| *line != HEADING).skip(1).take_while(|line| !line.starts_with("//! # "));
    let rows = section.filter_map(|line| line.strip_prefix("//! | ")?.split_once(" |"));
    rows.map(|(cell, _)| cell).filter(|cell| *cell != "dependency").collect()
}

#[test]
fn the_documentation_of_each_crate_names_the_dependencies_before_1_0_in_its_interface() {
    for (library, interface) in with_snapshot().unwrap() {
        let packages = before_one(&library.name);
        let used = packages.iter().filter(|(name, _)| mentions(&interface, name));
        let used: BTreeSet<_> = used.map(|(name, version)| format!("{name} {version}")).collect();
        let source = fs::read_to_string(library.directory().join("src/lib.rs")).unwrap();
        assert_eq!(named(&source), used.iter().map(String::as_str).collect(), "{}", library.name);
    }
}

#[test]
fn a_path_in_an_interface_is_that_of_the_package_with_the_whole_name() {
    assert!(mentions("pub fn a::b(_: &futures_core::stream::Stream)", "futures-core"));
    assert!(!mentions("pub fn a::b(_: &my_futures_core::Stream, a::futures_core::Stream)", "futures-core"));
}
