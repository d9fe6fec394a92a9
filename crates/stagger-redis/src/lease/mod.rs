//! The lease protocol, the side of a process: what it claims and what a reply changes. No clock and no I/O.

pub(crate) mod account;
pub(crate) mod claim;
pub(crate) mod ledger;
pub(crate) mod process;
