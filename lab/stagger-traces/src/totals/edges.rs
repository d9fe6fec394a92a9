use std::collections::HashMap;

use super::delays::Delays;
use crate::names::Name;

/// Most edges that are kept: the calls of one more are counted together.
const MAX_EDGES: usize = 2_000;

/// Retries up to this one have a histogram of their delays.
pub(crate) const MAX_RETRY: usize = 3;

/// A service and one that it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EdgeKey {
    pub(crate) caller: Name,
    pub(crate) callee: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EdgeId(pub(crate) usize);

/// What is known of an edge.
#[derive(Debug, Default)]
pub(crate) struct EdgeTotals {
    pub(crate) calls: u64,
    pub(crate) attempts: u64,
    pub(crate) failures: u64,
    /// Most attempts of one call.
    pub(crate) most_attempts: u32,
    /// Attempts, on this edge and below, that a retry on this edge has caused.
    pub(crate) caused: u64,
    /// Attempts that began after a caller had given up, and the retries among them.
    pub(crate) late: u64,
    pub(crate) late_retries: u64,
    /// Retries that came before the time that the server had asked for.
    pub(crate) early: u64,
    /// Retries after an answer with such a time.
    pub(crate) hinted: u64,
    /// From the end of an attempt to the start of the next one, by the number of the retry.
    pub(crate) delays: [Delays; MAX_RETRY],
    /// From start to start.
    pub(crate) intervals: [Delays; MAX_RETRY],
}

#[derive(Debug, Default)]
pub(crate) struct Edges {
    totals: Vec<(EdgeKey, EdgeTotals)>,
    index: HashMap<EdgeKey, EdgeId>,
}

impl Edges {
    /// Returns the edge, and keeps it if there is room; otherwise the last one, which stands for all others.
    pub(crate) fn keep(&mut self, key: EdgeKey) -> EdgeId {
        if let Some(id) = self.index.get(&key) {
            return *id;
        }
        if self.totals.len() == MAX_EDGES {
            return EdgeId(MAX_EDGES - 1);
        }
        let id = EdgeId(self.totals.len());
        self.totals.push((key, EdgeTotals::default()));
        self.index.insert(key, id);
        id
    }

    pub(crate) fn get(&mut self, id: EdgeId) -> &mut EdgeTotals {
        &mut self.totals[id.0].1
    }

    pub(crate) fn key(&self, id: EdgeId) -> EdgeKey {
        self.totals[id.0].0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (EdgeId, EdgeKey, &EdgeTotals)> {
        self.totals.iter().enumerate().map(|(at, (key, totals))| (EdgeId(at), *key, totals))
    }
}
