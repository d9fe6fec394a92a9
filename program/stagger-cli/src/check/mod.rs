//! `stagger check`: finds what could turn a policy, a file, or logged delays, into a retry storm.
//!
//! The rules are in `stagger_sim::lint`; this module runs them and prints the findings.

mod args;
mod baseline;
mod command;
mod files;
mod html;
mod json;
mod outputs;
mod report;
mod result;
mod rules;
mod traces;

pub(crate) use args::{CheckArgs, purposes};
pub(crate) use command::run;
pub(crate) use files::{ConfigPolicy, is_file, policies_of};
pub(crate) use json::findings_of;
