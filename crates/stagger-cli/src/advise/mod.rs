//! `stagger advise`: which policy, for whom.
//!
//! The questions, the decision tree and the search are the library's (`stagger_sim::advise`); here they are asked, and what
//! comes out is shown.

mod args;
mod command;
mod json;
mod prompt;
mod report;

pub(crate) use args::AdviseArgs;
pub(crate) use command::run;
