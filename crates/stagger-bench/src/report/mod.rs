//! How a run is told: tables for people, one document for programs.

mod json;
mod machine;
mod tables;

use crate::findings::Row;
use crate::goals::Goal;
use crate::weight::Weight;

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Tables for a terminal.
    Text,
    /// The same tables in Markdown.
    Markdown,
    /// One JSON document.
    Json,
}

/// Everything that a run found.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Report {
    /// Each case.
    pub(crate) rows: Vec<Row>,
    /// Each dependant of section G.
    pub(crate) dependants: Vec<Weight>,
    /// What was to be reached.
    pub(crate) goals: Vec<Goal>,
}

impl Report {
    /// The report as text in `format`.
    pub(crate) fn render(&self, format: Format) -> String {
        match format {
            Format::Text | Format::Markdown => tables::render(self, format),
            Format::Json => json::render(self),
        }
    }
}
