//! Generates the table of the rules in the guide.

use core::fmt::Write as _;
use std::fs;

use stagger_lint::Rule;

use super::support::published;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/check.md");
const BEGIN: &str = "<!-- rules -->\n";
const END: &str = "<!-- /rules -->\n";

fn rules() -> String {
    let mut text = "| code | finds |\n|---|---|\n".to_owned();
    for rule in Rule::all() {
        writeln!(text, "| {} | {} |", rule.code(), rule.title()).unwrap();
    }
    text
}

/// Compares the guide with the rules. After a change: `STAGGER_BLESS=1 cargo test -p stagger-lint rules_page`.
#[test]
fn the_guide_lists_every_rule() {
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let now = format!("{before}{BEGIN}\n{}\n{END}{after}", rules());
    published(PAGE, &now);
}
