//! One trace: which of its spans are attempts of one call, and what follows from it.

use std::collections::{BTreeMap, HashMap};

use crate::span::{Ending, Kind, Name, Span};
use crate::totals::{EdgeId, EdgeKey, MAX_RETRY, PathTotals, Totals};

/// Adds what a trace tells to the totals.
pub(crate) fn add(spans: Vec<Span>, totals: &mut Totals) {
    let before = spans.len();
    let tree = Tree::of(spans);
    totals.traces += 1;
    totals.duplicates += (before - tree.spans.len()) as u64;
    totals.orphans += tree.orphans;
    let calls = calls_of(&tree);
    let edges: Vec<_> =
        calls.iter().map(|call| totals.edges.keep(EdgeKey { caller: call.caller, callee: call.callee })).collect();
    let sizes = tree_sizes(&tree, &calls);
    for (call, edge) in calls.iter().zip(&edges) {
        add_call(&tree, call, *edge, &sizes, totals);
    }
    if let Some(path) = multiplied(&tree, &calls, &edges, &sizes) {
        totals.paths.add(path);
    }
}

fn add_call(tree: &Tree, call: &Call, edge: EdgeId, sizes: &[u64], totals: &mut Totals) {
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

/// The spans of a trace, parents before children.
struct Tree {
    spans: Vec<Span>,
    /// Where the parent of each span is, if it is in the trace.
    parents: Vec<Option<usize>>,
    /// The children of each span.
    children: Vec<Vec<usize>>,
    /// Spans whose parent is missing.
    orphans: u64,
}

impl Tree {
    /// Sorts the spans. Those that are there twice are taken once; those that are their own ancestors are left out.
    fn of(mut spans: Vec<Span>) -> Self {
        spans.sort_by_key(|span| span.start);
        // The two sides of a call may share an identifier; a span's parent is never on its own side then.
        let mut index: HashMap<(u64, bool), usize> = HashMap::with_capacity(spans.len());
        spans.retain(|span| {
            let key = (span.id, span.kind == Kind::Server);
            let is_new = !index.contains_key(&key);
            if is_new {
                index.insert(key, index.len());
            }
            is_new
        });
        let parent_of = |at: usize, span: &Span| {
            if span.parent == span.id && span.kind == Kind::Server {
                return index.get(&(span.id, false)).copied();
            }
            if span.parent == 0 {
                return None;
            }
            let server = index.get(&(span.parent, true));
            let parent = *server.or(index.get(&(span.parent, false)))?;
            if parent == at { None } else { Some(parent) }
        };
        let parents: Vec<_> = spans.iter().enumerate().map(|(at, span)| parent_of(at, span)).collect();
        let orphans = spans.iter().zip(&parents).filter(|(span, parent)| span.parent != 0 && parent.is_none()).count();
        let mut children = vec![Vec::new(); spans.len()];
        for (at, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(at);
            }
        }
        let mut order: Vec<usize> = (0..spans.len()).filter(|at| parents[*at].is_none()).collect();
        let mut next = 0;
        while next < order.len() {
            order.extend_from_slice(&children[order[next]]);
            next += 1;
        }
        Self::in_order(&spans, &parents, &order, orphans as u64)
    }

    fn in_order(spans: &[Span], parents: &[Option<usize>], order: &[usize], orphans: u64) -> Self {
        let mut places = vec![usize::MAX; spans.len()];
        order.iter().enumerate().for_each(|(place, at)| places[*at] = place);
        let parents: Vec<_> = order.iter().map(|at| parents[*at].map(|parent| places[parent])).collect();
        let mut children = vec![Vec::new(); order.len()];
        for (at, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(at);
            }
        }
        Self { spans: order.iter().map(|at| spans[*at]).collect(), parents, children, orphans }
    }
}

/// What the start of a span may precede the end of the one before it, in nanoseconds: they are measured one after the
/// other.
const TOLERANCE: u64 = 1_000_000;

/// A call: attempts of one operation, one after the other.
#[derive(Debug)]
struct Call {
    caller: Name,
    callee: Name,
    /// The span that called.
    parent: Option<usize>,
    /// The attempts in their order.
    attempts: Vec<usize>,
    /// Attempts that are not in the trace, as the first one tells.
    unseen: u32,
}

impl Call {
    /// Returns the number of attempts.
    fn number(&self) -> u32 {
        u32::try_from(self.attempts.len()).unwrap_or(u32::MAX).saturating_add(self.unseen)
    }

    /// Returns the number of attempts in the trees of the retries, these included.
    fn caused(&self, sizes: &[u64]) -> u64 {
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
fn calls_of(tree: &Tree) -> Vec<Call> {
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

/// What is not late yet, in nanoseconds.
const LATE_FROM: u64 = 1_000_000;

/// Most ancestors that are asked.
const MAX_ANCESTORS: usize = 500;

/// Returns whether a span began after one of its callers had given up.
///
/// The clocks of services differ, so times are compared within one service only. Below the span of a server, the time
/// since that server received the request counts: it is less than the time since the client sent it, so nothing is
/// called late that is not.
fn is_late(tree: &Tree, at: usize) -> bool {
    let mut now = tree.spans[at].start;
    let mut current = at;
    for _ in 0..MAX_ANCESTORS {
        let Some(parent) = tree.parents[current] else { return false };
        let (span, above) = (&tree.spans[current], &tree.spans[parent]);
        let is_received = span.kind == Kind::Server && above.kind == Kind::Client;
        if is_received {
            // To the clock of the client, as if the request had taken no time.
            now = above.start.saturating_add(now.saturating_sub(span.start));
        } else if span.service != above.service {
            return false;
        }
        if above.ending == Ending::TimedOut && above.kind == Kind::Client && now > above.end.saturating_add(LATE_FROM) {
            return true;
        }
        current = parent;
    }
    false
}

/// Longest path that is kept.
const MAX_LAYERS: usize = 30;

/// Returns the number of attempts in the tree below each span, itself included.
fn tree_sizes(tree: &Tree, calls: &[Call]) -> Vec<u64> {
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
fn multiplied(tree: &Tree, calls: &[Call], edges: &[EdgeId], sizes: &[u64]) -> Option<PathTotals> {
    let mut call_of: Vec<Option<usize>> = vec![None; tree.spans.len()];
    for (number, call) in calls.iter().enumerate() {
        call.attempts.iter().for_each(|at| call_of[*at] = Some(number));
    }
    // The product down to each span, parents first.
    let mut products = vec![1_u64; tree.spans.len()];
    let mut best: Option<(u64, usize)> = None;
    for at in 0..products.len() {
        if let Some(parent) = tree.parents[at] {
            products[at] = products[parent];
        }
        let Some(call) = call_of[at] else { continue };
        products[at] = products[at].saturating_mul(u64::from(calls[call].number()));
        match best {
            Some((product, _)) if products[at] <= product => {}
            _ => best = Some((products[at], call)),
        }
    }
    let (product, lowest) = best?;
    let mut path = Vec::new();
    let mut call = Some(lowest);
    while let Some(number) = call
        && path.len() < MAX_LAYERS
    {
        path.push(number);
        // The next span above that is an attempt of a call.
        let mut above = calls[number].parent;
        call = None;
        while let Some(at) = above {
            if call_of[at].is_some() {
                call = call_of[at];
                break;
            }
            above = tree.parents[at];
        }
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
