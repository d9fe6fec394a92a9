//! Draining: closes connections in batches, and assigns each client a time to reconnect.

pub(super) mod plan;
mod return_schedule;
pub(super) mod state;
