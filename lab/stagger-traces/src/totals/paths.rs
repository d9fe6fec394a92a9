use std::collections::HashMap;

use super::edges::EdgeId;

/// Most paths that are kept.
const MAX_PATHS: usize = 1_000;

/// Calls below one another that more than one layer retries.
#[derive(Debug)]
pub(crate) struct PathTotals {
    pub(crate) edges: Vec<EdgeId>,
    /// Attempts of a call on each edge, in the trace with the largest product.
    pub(crate) factors: Vec<u32>,
    /// The edge whose retries cause most attempts in that trace.
    pub(crate) guilty: usize,
    pub(crate) product: u64,
    pub(crate) traces: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Paths {
    found: HashMap<Vec<EdgeId>, PathTotals>,
    /// Traces with a path beyond the most that are kept.
    pub(crate) others: u64,
}

impl Paths {
    /// Adds the path of a trace.
    pub(crate) fn add(&mut self, path: PathTotals) {
        if let Some(known) = self.found.get_mut(&path.edges) {
            let traces = known.traces + path.traces;
            if path.product > known.product {
                *known = path;
            }
            known.traces = traces;
        } else if self.found.len() < MAX_PATHS {
            self.found.insert(path.edges.clone(), path);
        } else {
            self.others += path.traces;
        }
    }

    /// Returns the paths, the largest product first.
    pub(crate) fn sorted(&self) -> Vec<&PathTotals> {
        let mut paths: Vec<_> = self.found.values().collect();
        paths.sort_by(|a, b| (b.product, b.traces, &a.edges).cmp(&(a.product, a.traces, &b.edges)));
        paths
    }
}
