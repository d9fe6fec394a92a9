//! What call events do not report: collected from guards, and counted from reports.

mod collectors;
mod emit;
mod gauges;
mod keyed;
mod quiet;
mod record;

pub use gauges::Gauges;
pub use record::{record_batch, record_hedged, record_queue};
