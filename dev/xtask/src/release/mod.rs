//! What a release consists of: the conditions for it, the files that are published, and their bill of materials.

pub(crate) mod archive;
pub(crate) mod bill;
pub(crate) mod check;
pub(crate) mod program;
