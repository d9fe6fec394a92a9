//! One trace: which of its spans are attempts of one call, and what follows from it.

mod calls;
mod deadline;
mod layers;
mod tree;

use crate::span::Span;
use crate::totals::{EdgeKey, MAX_RETRY, Totals};
use calls::{Call, calls};
use deadline::is_late;
use layers::multiplied;
use tree::Tree;

/// Adds what a trace tells to the totals.
pub(crate) fn add(spans: Vec<Span>, totals: &mut Totals) {
    let before = spans.len();
    let tree = Tree::of(spans);
    totals.traces += 1;
    totals.duplicates += (before - tree.spans.len()) as u64;
    totals.orphans += tree.orphans;
    let calls = calls(&tree);
    let edges: Vec<_> =
        calls.iter().map(|call| totals.edges.keep(EdgeKey { caller: call.caller, callee: call.callee })).collect();
    let sizes = layers::sizes(&tree, &calls);
    for (call, edge) in calls.iter().zip(&edges) {
        add_call(&tree, call, *edge, &sizes, totals);
    }
    if let Some(path) = multiplied(&tree, &calls, &edges, &sizes) {
        totals.paths.add(path);
    }
}

fn add_call(tree: &Tree, call: &Call, edge: crate::totals::EdgeId, sizes: &[u64], totals: &mut Totals) {
    for (number, &at) in call.attempts.iter().enumerate() {
        let is_retry = number > 0 || call.unseen > 0;
        totals.timeline.add(tree.spans[at].start, is_retry);
    }
    let found = totals.edges.get(edge);
    found.calls += 1;
    found.attempts += u64::from(call.number());
    found.most_attempts = found.most_attempts.max(call.number());
    found.caused += call.caused(sizes);
    for (number, &at) in call.attempts.iter().enumerate() {
        found.failures += u64::from(tree.spans[at].ending.is_failure());
        if is_late(tree, at) {
            found.late += 1;
            found.late_retries += u64::from(number > 0);
        }
    }
    for (number, pair) in call.attempts.windows(2).enumerate() {
        let [before, after] = [pair[0], pair[1]].map(|at| &tree.spans[at]);
        let delay = after.start.saturating_sub(before.end);
        found.hinted += u64::from(before.hint > 0);
        found.early += u64::from(before.hint > delay);
        // The number of a retry is known only if none before it is missing.
        if call.unseen == 0 && number < MAX_RETRY {
            found.delays[number].add(delay);
            found.intervals[number].add(after.start.saturating_sub(before.start));
        }
    }
}
