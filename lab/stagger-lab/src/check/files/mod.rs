//! Files that are checked: which they are, and what is found in them.

mod notes;
mod policies;
mod read;
mod refused;
mod report;

pub(super) use notes::Note;
pub use policies::ConfigPolicy;
pub(crate) use policies::policies_of;
pub(super) use read::{FileResult, UnusedFlag};
pub(super) use report::{Detail, parts};
