//! Resuming where the last connection ended.

pub(super) mod handshake;
pub(super) mod protocol;
