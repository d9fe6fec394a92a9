use super::tree::Tree;
use crate::span::{Ending, Kind};

/// What is not late yet, in nanoseconds.
const TOLERANCE: u64 = 1_000_000;

/// Most ancestors that are asked.
const MAX_DEPTH: usize = 500;

/// Returns whether a span began after one of its callers had given up.
///
/// The clocks of services differ, so times are compared within one service only. Below the span of a server, the time
/// since that server received the request counts: it is less than the time since the client sent it, so nothing is
/// called late that is not.
pub(super) fn is_late(tree: &Tree, at: usize) -> bool {
    let mut now = tree.spans[at].start;
    let mut current = at;
    for _ in 0..MAX_DEPTH {
        let Some(parent) = tree.parents[current] else { return false };
        let (span, above) = (&tree.spans[current], &tree.spans[parent]);
        let is_received = span.kind == Kind::Server && above.kind == Kind::Client;
        if is_received {
            // To the clock of the client, as if the request had taken no time.
            now = above.start.saturating_add(now.saturating_sub(span.start));
        } else if span.service != above.service {
            return false;
        }
        if above.ending == Ending::TimedOut && above.kind == Kind::Client && now > above.end.saturating_add(TOLERANCE) {
            return true;
        }
        current = parent;
    }
    false
}
