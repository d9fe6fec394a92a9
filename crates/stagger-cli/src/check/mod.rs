//! `stagger check`: what makes a storm of a policy, or of delays that have happened.
//!
//! The rules are the library's (`stagger_sim::lint`); here they are asked and their findings shown.

mod args;
mod command;
mod json;
mod report;
mod rules;

pub(crate) use args::CheckArgs;
pub(crate) use command::run;
