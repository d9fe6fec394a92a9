//! The legend of the codes in test names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../../docs/conformance.md");

/// Returns the code of each row, in lower case and with an underscore as in a test name.
fn rows() -> Vec<String> {
    let items = PAGE.lines().filter_map(|line| line.strip_prefix("- ")?.split(':').next());
    items.filter_map(|cell| code(&cell.to_lowercase().replace('-', "_"))).collect()
}

/// Returns the two characters that the codes of each system begin with.
fn systems() -> BTreeSet<String> {
    rows().into_iter().map(|row| row[..2].to_owned()).collect()
}

/// Returns the codes in the name of a function, such as `ht_09` and `ht_11` in `ht_09_ht_11_both_forms_of_a_date`. A
/// code at the beginning of the name counts even if `systems` does not have its system.
fn codes(function: &str, systems: &BTreeSet<String>) -> Vec<String> {
    let words: Vec<_> = function.split('_').collect();
    let pairs = words.windows(2).enumerate();
    let of_system = pairs.filter(|(place, pair)| *place == 0 || systems.contains(pair[0]));
    of_system.filter_map(|(_, pair)| code(&pair.join("_"))).collect()
}

/// Returns the text if it is two characters, an underscore, two digits and at most one letter.
fn code(text: &str) -> Option<String> {
    let (system, row) = text.split_once('_')?;
    let number = row.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or(row);
    let is_system = system.len() == 2 && system.starts_with(|c: char| c.is_ascii_lowercase());
    let is_code = is_system && number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_code { Some(text.to_owned()) } else { None }
}

/// Returns the codes in the names of the workspace's functions, each with one such name.
fn codes_in_functions() -> BTreeMap<String, String> {
    let (workspace, systems) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), systems());
    let mut found = BTreeMap::new();
    for file in ["crates", "fleet", "lab", "program", "dev"].iter().flat_map(|house| sources(&workspace.join(house))) {
        for line in fs::read_to_string(&file).expect("a source is text").lines() {
            let Some((_, rest)) = line.split_once("fn ") else { continue };
            let name = rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
            for code in codes(name, &systems) {
                found.insert(code, format!("{name} in {}", file.display()));
            }
        }
    }
    found
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory of the workspace");
    let paths = entries.map(|entry| entry.expect("an entry").path()).filter(|path| !path.ends_with("target"));
    let nested = paths.map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    nested.flatten().filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

#[test]
fn each_code_in_a_test_name_has_a_row() {
    let rows = BTreeSet::from_iter(rows());
    let missing: Vec<_> = codes_in_functions().into_iter().filter(|(code, _)| !rows.contains(code)).collect();
    assert!(missing.is_empty(), "not in docs/conformance.md: {missing:#?}");
}

#[test]
fn each_row_has_a_test_and_occurs_once() {
    let (rows, codes) = (rows(), codes_in_functions());
    assert!(rows.len() > 100, "{}", rows.len());
    let untested: Vec<_> = rows.iter().filter(|row| !codes.contains_key(*row)).collect();
    assert!(untested.is_empty(), "no test has the code of {untested:?}");
    assert_eq!(BTreeSet::from_iter(&rows).len(), rows.len(), "a row is there twice");
}

#[test]
fn codes_are_found_at_the_beginning_of_a_name_and_of_known_systems_anywhere() {
    for (name, want) in [
        ("ht_09_ht_11_both_forms", &["ht_09", "ht_11"][..]),
        ("r4_13b_longer", &["r4_13b"]),
        ("zz_01_unknown", &["zz_01"]),
        ("after_ms_10_more", &[]),
        ("ck_1_is_no_code", &[]),
    ] {
        assert_eq!(codes(name, &systems()), want, "{name}");
    }
}
