use std::collections::BTreeMap;

use super::tree::Tree;
use crate::names::Name;
use crate::span::{Ending, Kind, Span};

/// What the start of a span may precede the end of the one before it, in nanoseconds: they are measured one after the
/// other.
const TOLERANCE: u64 = 1_000_000;

/// A call: attempts of one operation, one after the other.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) caller: Name,
    pub(super) callee: Name,
    /// The span that called.
    pub(super) parent: Option<usize>,
    /// The attempts in their order.
    pub(super) attempts: Vec<usize>,
    /// Attempts that are not in the trace, as the first one tells.
    pub(super) unseen: u32,
}

impl Call {
    /// Returns the number of attempts.
    pub(super) fn number(&self) -> u32 {
        u32::try_from(self.attempts.len()).unwrap_or(u32::MAX).saturating_add(self.unseen)
    }

    /// Returns the number of attempts in the trees of the retries, these included.
    pub(super) fn caused(&self, sizes: &[u64]) -> u64 {
        self.attempts.iter().skip(1).map(|at| sizes[*at]).sum()
    }
}

/// A call whose next attempt may come.
struct Open {
    call: usize,
    last: usize,
}

/// What spans have in common that may be attempts of one call.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Under {
    Span(usize),
    /// A parent that is not in the trace.
    Missing(u64),
    /// Nothing: it is a root.
    Nothing(usize),
}

/// Returns the calls of a trace.
pub(super) fn calls(tree: &Tree) -> Vec<Call> {
    let mut groups: BTreeMap<(Under, Name, Name, Name), Vec<usize>> = BTreeMap::new();
    for (at, span) in tree.spans.iter().enumerate() {
        if span.kind == Kind::Client {
            let under = match tree.parents[at] {
                Some(parent) => Under::Span(parent),
                None if span.parent != 0 => Under::Missing(span.parent),
                None => Under::Nothing(at),
            };
            groups.entry((under, span.service, span.name, span.peer)).or_default().push(at);
        }
    }
    let mut calls = Vec::new();
    for mut group in groups.into_values() {
        group.sort_by_key(|at| (tree.spans[*at].start, *at));
        add_group(tree, &group, &mut calls);
    }
    calls
}

/// Divides spans with the same parent, name and peer into calls.
fn add_group(tree: &Tree, group: &[usize], calls: &mut Vec<Call>) {
    let mut open: Vec<Open> = Vec::new();
    let first = calls.len();
    for &at in group {
        let span = &tree.spans[at];
        let has_ended = |open: &Open| tree.spans[open.last].end <= span.start.saturating_add(TOLERANCE);
        // The call whose last attempt ended latest, of those that go on after it.
        let before = open
            .iter_mut()
            .filter(|open| has_ended(open) && goes_on(&tree.spans[open.last], span))
            .max_by_key(|open| tree.spans[open.last].end);
        match before {
            Some(open) => {
                // A redirect, or a request with credentials, continues its attempt.
                if tree.spans[open.last].ending == Ending::Moved {
                    calls[open.call].attempts.pop();
                }
                calls[open.call].attempts.push(at);
                open.last = at;
            }
            None => {
                open.push(Open { call: calls.len(), last: at });
                let caller = span.service;
                let parent = tree.parents[at];
                calls.push(Call { caller, callee: Name::NONE, parent, attempts: vec![at], unseen: span.resends });
            }
        }
        // Bounds the search for wide groups: the oldest has ended long ago.
        if open.len() > 100 {
            open.remove(0);
        }
    }
    for call in &mut calls[first..] {
        call.callee = callee(tree, call);
    }
}

/// Returns whether a span continues the call of the one before it.
fn goes_on(before: &Span, span: &Span) -> bool {
    // A success before it: another call, unless the client says otherwise.
    before.ending.is_failure() || before.ending == Ending::Moved || span.resends > before.resends
}

/// Returns the callee: the service that answered, else the name that the attributes tell.
fn callee(tree: &Tree, call: &Call) -> Name {
    let servers = call.attempts.iter().flat_map(|at| &tree.children[*at]).map(|child| &tree.spans[*child]);
    let answered = servers.filter(|span| span.kind == Kind::Server && span.service != Name::NONE);
    let first = &tree.spans[call.attempts[0]];
    let named = if first.peer == Name::NONE { first.name } else { first.peer };
    answered.map(|span| span.service).next().unwrap_or(named)
}
