//! Files that are checked: which they are, and what is found in them.

mod find;
mod notes;
mod policies;
mod read;
mod report;
mod subject;

pub(super) use notes::Note;
pub(crate) use policies::{ConfigPolicy, policies_of};
pub(super) use read::{FileResult, UnusedFlag};
pub(super) use report::{Detail, Shown, section, shown};
pub(crate) use subject::is_file;
