//! What call events do not report: collected from guards, and counted from reports.

mod collectors;
mod gauges;
mod record;
mod sums;

pub use gauges::Gauges;
#[cfg(feature = "hedge")]
pub use record::record_hedged;
#[cfg(feature = "queue")]
pub use record::{record_batch, record_queue};
