//! The report as JSON.

use super::Report;
use super::machine::Machine;

/// The version of the document. An incompatible change changes it.
const SCHEMA: &str = "stagger-bench/1";

#[derive(serde::Serialize)]
struct Document<'a> {
    schema: &'static str,
    machine: Machine,
    #[serde(flatten)]
    report: &'a Report,
}

pub(super) fn render(report: &Report) -> String {
    let document = Document { schema: SCHEMA, machine: Machine::current(), report };
    // Plain structs with string keys always serialize; a figure that is not finite becomes null.
    serde_json::to_string_pretty(&document).expect("plain data serializes")
}
