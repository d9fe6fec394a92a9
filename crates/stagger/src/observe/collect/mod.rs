//! What is not told by the events of calls: collected from guards, and counted from reports.

mod emit;
mod gauges;
mod record;
mod watch;

pub use gauges::Gauges;
pub use record::{record_batch, record_hedged, record_queue};
