//! Programs run as child processes, and the users they run as.

pub(crate) mod capture;
pub(crate) mod process_tree;
pub(crate) mod program;
pub(crate) mod running;
