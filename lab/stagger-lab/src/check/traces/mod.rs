//! `stagger check --traces`: what traces tell about retries.
//!
//! `stagger_traces` finds it; this module opens the files and prints the report.

mod command;
mod report;

pub(crate) use command::run;
