//! How everybody leaves: in batches, with a time to come back at, and nobody all at once.

mod handle;
mod plan;
mod return_schedule;

pub(super) use handle::DrainState;
pub use handle::{CloseRequest, DrainHandle, DrainProgress};
pub use plan::Drain;
