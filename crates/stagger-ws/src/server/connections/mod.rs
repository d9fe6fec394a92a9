//! The open connections: their registry, and the permit that each of them holds.

pub(super) mod permit;
pub(super) mod registry;
pub(super) mod shared;
