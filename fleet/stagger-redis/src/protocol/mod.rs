//! The protocol of guards that share a view of the server, in one process, without a clock and I/O.

pub(crate) mod claim;
pub(crate) mod opinion;
pub(crate) mod pause;
