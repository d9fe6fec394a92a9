//! The report of a run: tables for readers, a JSON document for programs.

mod json;
mod machine;
mod tables;

use crate::findings::Row;
use crate::goals::Goal;
use crate::weight::Weight;

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Tables for a terminal.
    Text,
    /// Markdown tables.
    Markdown,
    /// A JSON document.
    Json,
}

/// The results of a run.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Report {
    /// The measured cases.
    pub(crate) rows: Vec<Row>,
    /// The dependants of section G.
    pub(crate) dependants: Vec<Weight>,
    /// The goals.
    pub(crate) goals: Vec<Goal>,
}

impl Report {
    /// Renders the report.
    pub(crate) fn render(&self, format: Format) -> String {
        match format {
            Format::Text | Format::Markdown => tables::render(self, format),
            Format::Json => json::render(self),
        }
    }
}
