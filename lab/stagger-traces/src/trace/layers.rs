use super::calls::Call;
use super::tree::Tree;
use crate::totals::{EdgeId, PathTotals};

/// Longest path that is kept.
const MAX_DEPTH: usize = 30;

/// Returns the number of attempts in the tree below each span, itself included.
pub(super) fn sizes(tree: &Tree, calls: &[Call]) -> Vec<u64> {
    let mut sizes = vec![0; tree.spans.len()];
    for at in calls.iter().flat_map(|call| &call.attempts) {
        sizes[*at] = 1;
    }
    // Children come after their parents.
    for at in (0..sizes.len()).rev() {
        if let Some(parent) = tree.parents[at] {
            sizes[parent] += sizes[at];
        }
    }
    sizes
}

/// Returns the path with the largest product of attempts, if more than one layer on it retries.
pub(super) fn multiplied(tree: &Tree, calls: &[Call], edges: &[EdgeId], sizes: &[u64]) -> Option<PathTotals> {
    let mut call_of = vec![None; tree.spans.len()];
    for (number, call) in calls.iter().enumerate() {
        call.attempts.iter().for_each(|at| call_of[*at] = Some(number));
    }
    // The product down to each span, parents first.
    let mut products = vec![1_u64; tree.spans.len()];
    let mut best: Option<(u64, usize)> = None;
    for at in 0..products.len() {
        let above = tree.parents[at].map_or(1, |parent| products[parent]);
        let own = call_of[at].map_or(1, |call: usize| u64::from(calls[call].number()));
        products[at] = above.saturating_mul(own);
        if let Some(call) = call_of[at].filter(|_| best.is_none_or(|(product, _)| products[at] > product)) {
            best = Some((products[at], call));
        }
    }
    let (product, lowest) = best?;
    let mut path = Vec::new();
    let mut call = Some(lowest);
    while let Some(number) = call.filter(|_| path.len() < MAX_DEPTH) {
        path.push(number);
        let mut above = calls[number].parent;
        while above.is_some_and(|at| call_of[at].is_none()) {
            above = above.and_then(|at| tree.parents[at]);
        }
        call = above.and_then(|at| call_of[at]);
    }
    path.reverse();
    let retrying = path.iter().filter(|call| calls[**call].number() > 1).count();
    if retrying < 2 {
        return None;
    }
    // The first of those that cause as much: the outermost, which multiplies the others.
    let caused: Vec<u64> = path.iter().map(|call| caused_on(edges[*call], calls, edges, sizes)).collect();
    let most = caused.iter().max()?;
    Some(PathTotals {
        edges: path.iter().map(|call| edges[*call]).collect(),
        factors: path.iter().map(|call| calls[*call].number()).collect(),
        guilty: caused.iter().position(|caused| caused == most)?,
        product,
        traces: 1,
    })
}

/// Returns how many attempts of the trace the retries on an edge have caused.
fn caused_on(edge: EdgeId, calls: &[Call], edges: &[EdgeId], sizes: &[u64]) -> u64 {
    calls.iter().zip(edges).filter(|(_, other)| **other == edge).map(|(call, _)| call.caused(sizes)).sum()
}
