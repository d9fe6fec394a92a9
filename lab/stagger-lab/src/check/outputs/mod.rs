//! Findings for other programs.

mod github;
mod junit;
mod sarif;

pub(super) use github::annotations;
pub(super) use junit::suites;
pub(super) use sarif::log;
