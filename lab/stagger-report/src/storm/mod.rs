//! Parts that `simulate` and `drill` share: comparing policies, assertions and reports.
//!
//! Every report is generated from the simulator's document `stagger.storm/1`: tables, CSV, Markdown, HTML and
//! assertions iterate over the metrics of its scenario, so none of them can differ from the JSON.

mod assertion;
mod charts;
mod html;
mod measurements;
mod outage;
pub mod parse;
mod progress;
mod results;
#[cfg(test)]
mod samples;
mod subject;
mod summary;
mod timeline;
mod write;

pub(crate) use assertion::is_name_of;
pub use assertion::{Condition, parse_assertions};
pub use measurements::{unreliable, verdict_on};
pub use parse::{named_policies, number_duplicates, short_name};
pub use progress::{Interrupt, ProgressLine};
pub use timeline::{SAMPLED_CLIENTS, downsample};
pub use write::{Format, OutputArgs, Outputs, RunCount, csv_text, finish, markdown_text, rendered};
