use std::collections::HashMap;

use crate::span::{Kind, Span};

/// The spans of a trace, parents before children.
pub(super) struct Tree {
    pub(super) spans: Vec<Span>,
    /// Where the parent of each span is, if it is in the trace.
    pub(super) parents: Vec<Option<usize>>,
    /// The children of each span.
    pub(super) children: Vec<Vec<usize>>,
    /// Spans whose parent is missing.
    pub(super) orphans: u64,
}

impl Tree {
    /// Sorts the spans. Those that are there twice are taken once; those that are their own ancestors are left out.
    pub(super) fn of(mut spans: Vec<Span>) -> Self {
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
            let found = index.get(&(span.parent, true)).or_else(|| index.get(&(span.parent, false)));
            found.copied().filter(|parent| span.parent != 0 && *parent != at)
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
