//! How everybody leaves: in batches, with a time to come back at, and nobody all at once.

mod draining;
mod line;
mod plan;

pub(super) use draining::Course;
pub use draining::{CloseRequest, DrainHandle, DrainProgress};
pub use plan::Drain;
