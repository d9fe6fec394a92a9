//! What is found in traces whose truth is known.

#[path = "suite/clean.rs"]
mod clean;
#[path = "suite/files.rs"]
mod files;
#[path = "suite/found.rs"]
mod found;
#[path = "suite/recorded.rs"]
mod recorded;
