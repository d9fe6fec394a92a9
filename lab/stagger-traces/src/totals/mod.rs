//! What is known of all traces together, in bounded memory.

mod delays;
mod edges;
mod paths;
mod timeline;

pub(crate) use delays::{Delays, Step};
pub(crate) use edges::{EdgeId, EdgeKey, EdgeTotals, Edges, MAX_RETRY};
pub(crate) use paths::{PathTotals, Paths};
pub(crate) use timeline::Timeline;

/// All that is counted.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) edges: Edges,
    pub(crate) paths: Paths,
    pub(crate) timeline: Timeline,
    pub(crate) traces: u64,
    /// Spans whose parent is not in the trace.
    pub(crate) orphans: u64,
    /// Spans that a trace has twice.
    pub(crate) duplicates: u64,
}
