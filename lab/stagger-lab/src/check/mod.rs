//! `stagger check`: finds what could turn a policy, a file, or logged delays, into a retry storm.
//!
//! The rules are in `stagger_lint`; this module runs them and prints the findings.

mod args;
mod baseline;
mod command;
mod files;
mod json;
mod outputs;
mod report;
mod result;
mod rules;
mod traces;

/// The exit code if nothing was found in traces or in a log, and there is too little in them to find anything.
const TOO_FEW: u8 = 3;

pub use args::CheckArgs;
pub(crate) use args::purposes;
pub use command::run;
pub use files::ConfigPolicy;
pub(crate) use files::policies_of;
pub(crate) use json::findings_of;
