//! The background task of a fleet.

mod leases;
pub(crate) mod task;
