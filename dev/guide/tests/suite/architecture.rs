//! The table of places in ARCHITECTURE.md.

use std::path::Path;

const PAGE: &str = include_str!("../../../../ARCHITECTURE.md");

/// Returns the code spans of the page that are paths inside a crate.
fn paths() -> impl Iterator<Item = &'static str> {
    PAGE.split('`').skip(1).step_by(2).filter(|span| span.starts_with("stagger") && span.contains('/'))
}

#[test]
fn every_path_in_the_architecture_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let houses = ["crates", "fleet", "lab", "program"].map(|house| root.join(house));
    let missing: Vec<_> = paths().filter(|path| !houses.iter().any(|house| house.join(path).exists())).collect();
    assert!(paths().count() > 50 && missing.is_empty(), "missing: {missing:?}");
}
