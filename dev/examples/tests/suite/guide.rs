//! The rules on the guide's page about databases.

use std::fs;

const PAGE: &str = include_str!("../../../../docs/guide/databases.md");

#[test]
fn the_guide_shows_every_rule_as_it_is_tested() {
    let recipes = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/recipes")).unwrap();
    let mut shown = 0;
    for recipe in recipes {
        let path = recipe.unwrap().path();
        let code = fs::read_to_string(&path).unwrap();
        assert!(PAGE.contains(&format!("\n{code}```\n")), "docs/guide/databases.md does not show {}", path.display());
        shown += 1;
    }
    let blocks = PAGE.lines().filter(|line| line.starts_with("```rust,ignore")).count();
    // That of the MongoDB driver is not compiled: the page says why.
    assert_eq!(shown + 1, blocks, "every block that is not compiled with the guide is a recipe");
}
