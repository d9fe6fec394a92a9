//! Generates the documentation of the rules in the guide.

use core::fmt::Write as _;
use std::fs;

use stagger_lint::Rule;

use super::support::published;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/check.md");
const BEGIN: &str = "<!-- rules -->\n";
const END: &str = "<!-- /rules -->\n";

fn rules() -> String {
    let mut text = "| code | name | finds |\n|---|---|---|\n".to_owned();
    for rule in Rule::all() {
        writeln!(text, "| {} | `{}` | {} |", rule.code(), rule.name(), rule.title()).unwrap();
    }
    for rule in Rule::all() {
        writeln!(text, "\n### {} {}\n", rule.code(), rule.name()).unwrap();
        let title = format!("A {}: {}. Why: {}.", rule.severity().name(), rule.title(), rule.rationale());
        writeln!(text, "{}\n\n{}", filled(&title), filled(rule.details())).unwrap();
    }
    text
}

/// Wraps text to lines of at most 120 characters.
fn filled(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= 120 => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// Compares the guide with the rules. After a change: `STAGGER_BLESS=1 cargo test -p stagger-lint rules_page`.
#[test]
fn the_guide_documents_every_rule() {
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let now = format!("{before}{BEGIN}\n{}\n{END}{after}", rules());
    published(PAGE, &now);
}
