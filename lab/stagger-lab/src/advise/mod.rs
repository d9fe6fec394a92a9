//! `stagger advise`: recommends a policy.
//!
//! The questions, the decision tree and the search are in `stagger_lint::advise`; this module prompts for the answers
//! and prints the result.

mod command;
mod commands;
mod json;
mod report;

pub(crate) use command::recommend;
pub use command::{AdviseArgs, run};
