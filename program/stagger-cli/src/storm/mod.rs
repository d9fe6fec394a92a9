//! Parts that `simulate` and `drill` share: comparing policies, assertions and reports.
//!
//! Every report is generated from the simulator's document `stagger.storm/1`: tables, CSV, Markdown, HTML and assertions
//! iterate over the metrics of its scenario, so none of them can differ from the JSON.

mod assertion;
mod charts;
mod compare;
mod csv;
mod finish;
mod html;
mod interrupt;
mod key_figures;
mod markdown;
mod measurements;
mod metric;
mod outage;
mod outputs;
pub(crate) mod parse;
mod progress;
mod results;
#[cfg(test)]
mod samples;
mod subject;
mod summary;
mod svg;
mod swept;
mod threshold;
mod timeline;
mod write;

pub(crate) use assertion::{Condition, is_name_of, parse_assertions};
pub(crate) use compare::{named_policies, number_duplicates, short_name};
pub(crate) use csv::csv_text;
pub(crate) use finish::{RunCount, finish};
pub(crate) use interrupt::Interrupt;
pub(crate) use markdown::escaped as markdown_text;
pub(crate) use measurements::{unreliable, verdict_on};
pub(crate) use outputs::{Format, OutputArgs, Outputs};
pub(crate) use progress::ProgressLine;
pub(crate) use timeline::{SAMPLED_CLIENTS, Timeline, downsample, resample};
pub(crate) use write::rendered;
