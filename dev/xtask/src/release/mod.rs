//! What a release consists of: its changelog, the conditions for it, and the files that are published.

pub(crate) mod archive;
pub(crate) mod bill;
pub(crate) mod changelog;
pub(crate) mod notices;
pub(crate) mod readiness;
pub(crate) mod stage;
