//! `stagger simulate system`: services that call each other, as a file describes them.

mod charts;
mod command;
mod csv;
mod document;
mod find;
mod frontier;
mod html;
mod markdown;
mod metric;
mod range;
mod report;
mod tables;
mod words;

pub(in crate::simulate) use command::{document, page, run, run_file};
pub(in crate::simulate) use document::Document;
pub(crate) use document::VerdictEntry;
pub(crate) use metric::{Metric, failures, parse_conditions, seconds};
pub(in crate::simulate) use words::conclusions;
