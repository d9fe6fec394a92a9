//! The protocol of a shared quiet period in one process, without a clock and I/O.

pub(crate) mod claim;
pub(crate) mod pause;
