//! The document for programs.

use super::Report;
use super::machine::Machine;

/// The shape of the document; a change that breaks readers changes this.
const SCHEMA: &str = "stagger-bench/1";

#[derive(serde::Serialize)]
struct Document<'a> {
    schema: &'static str,
    machine: Machine,
    #[serde(flatten)]
    report: &'a Report,
}

pub(super) fn render(report: &Report) -> String {
    let document = Document { schema: SCHEMA, machine: Machine::here(), report };
    // Plain structs with string keys: there is nothing in them that JSON cannot hold (what is not a number is null).
    serde_json::to_string_pretty(&document).expect("plain data")
}
