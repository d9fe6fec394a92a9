//! Files that are checked: which they are, and what is found in them.

mod find;
mod read;
mod report;
mod subject;

pub(super) use read::FileResult;
pub(super) use report::section;
pub(super) use subject::is_file;
