//! Reports on simulations and drills: figures, tables, charts and pages, and assertions on them.
//!
//! The commands `simulate`, `drill`, `check` and `advise` of the program share them. The interface follows these
//! commands and makes no promise of its own.

#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "what only the commands use is documented where it explains something"
)]

pub mod condition;
pub mod output;
pub mod page;
pub mod parse;
pub mod progress;
pub mod report;
pub mod storm;
mod text;
