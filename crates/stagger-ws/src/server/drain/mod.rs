//! Draining: closes connections in batches, and assigns each client a time to reconnect.

mod handle;
mod plan;
mod return_schedule;

pub(super) use handle::DrainState;
pub use handle::{CloseRequest, DrainHandle, DrainProgress};
pub use plan::Drain;
