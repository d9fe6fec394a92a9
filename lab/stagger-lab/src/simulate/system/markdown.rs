use super::document::Document;
use super::tables::tables;
use super::words::{conclusions, describe, seeds};
use stagger_report::storm::markdown_text;

/// Returns the tables and the conclusions as Markdown.
pub(super) fn text(document: &Document) -> String {
    let mut out = markdown_text(&describe(document)) + "\n";
    for one in tables(document) {
        let heads: Vec<_> = one.heads.iter().map(|(heading, _)| *heading).collect();
        out.push_str(&format!("\n| {} |\n|---|{}\n", heads.join(" | "), "--:|".repeat(heads.len() - 1)));
        for row in one.rows {
            let cells: Vec<_> = row.iter().map(|cell| markdown_text(cell)).collect();
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    out.push('\n');
    for text in conclusions(document).into_iter().chain([seeds(document)]) {
        out.push_str(&format!("- {}\n", markdown_text(&text)));
    }
    out
}
