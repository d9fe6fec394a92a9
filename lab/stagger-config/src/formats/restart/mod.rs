//! What starts processes again.

pub(crate) mod compose;
pub(crate) mod systemd;
