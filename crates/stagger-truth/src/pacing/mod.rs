//! How client processes share a server that limits them: the shipped pacer and models of other projects' controllers, in
//! virtual time, in scenarios that were chosen before any of them had run.

pub mod comparison;
mod random;
pub mod report;
pub mod rivals;
pub mod run;
pub mod scenarios;
pub mod server;

/// Nanoseconds of virtual time.
pub type Nanos = u64;
