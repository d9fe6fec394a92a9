//! Files for a package of the program, generated from its command line: shell completions and manual pages.

pub(crate) mod completions;
pub(crate) mod man;
