//! What is known of all traces together, in bounded memory.

use std::collections::{BTreeMap, HashMap};

use crate::span::Name;

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

/// Shortest delay that is told apart, in nanoseconds: below it, a retry comes at once.
const SHORTEST: u64 = 1_000_000;

/// Relative width of a class of delays.
const CLASS: f64 = 0.02;

/// Number of neighboring classes that count as one delay: what a timer and a busy machine add.
const WIDTH: u16 = 3;

/// A histogram of delays in classes of equal relative width: at most 1,600 of them.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    counts: BTreeMap<u16, u64>,
    total: u64,
}

/// The delay around which most of a histogram is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// The delay in nanoseconds; 0 if it is below a millisecond.
    pub(crate) delay: u64,
    /// The share of all delays that are within 3 % of it.
    pub(crate) share: f64,
    /// Number of all delays.
    pub(crate) samples: u64,
}

fn class(delay: u64) -> u16 {
    let relative = delay.max(SHORTEST) as f64 / SHORTEST as f64;
    // At most ln(u64::MAX / 1e6) / ln 1.02 = 1541.
    (relative.ln() / CLASS.ln_1p()) as u16
}

impl Delays {
    pub(crate) fn add(&mut self, delay: u64) {
        *self.counts.entry(class(delay)).or_default() += 1;
        self.total += 1;
    }

    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// Returns the densest part; `None` without any delay.
    pub(crate) fn step(&self) -> Option<Step> {
        let around = |first: u16| self.counts.range(first..first.saturating_add(WIDTH));
        let densest =
            self.counts.keys().copied().max_by_key(|first| around(*first).map(|(_, count)| count).sum::<u64>());
        let first = densest?;
        let (middle, _) = around(first).max_by_key(|(_, count)| **count)?;
        let delay = SHORTEST as f64 * (1.0 + CLASS).powf(f64::from(*middle) + 0.5);
        let count: u64 = around(first).map(|(_, count)| count).sum();
        Some(Step {
            delay: if *middle == 0 { 0 } else { delay as u64 },
            share: count as f64 / self.total as f64,
            samples: self.total,
        })
    }
}

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

/// Most parts of time that are kept.
const MAX_PARTS: usize = 4_096;

const SECOND: u64 = 1_000_000_000;

/// Attempts that began within a part of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Second {
    pub(crate) first: u64,
    pub(crate) retries: u64,
}

/// Attempts over time. A part is a second, and longer if the traces reach further.
#[derive(Debug)]
pub(crate) struct Timeline {
    parts: BTreeMap<u64, Second>,
    /// Length of a part, in nanoseconds.
    width: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { parts: BTreeMap::new(), width: SECOND }
    }
}

impl Timeline {
    pub(crate) fn add(&mut self, start: u64, is_retry: bool) {
        let part = self.parts.entry(start / self.width).or_default();
        part.retries += u64::from(is_retry);
        part.first += u64::from(!is_retry);
        while self.parts.len() > MAX_PARTS {
            self.widen();
        }
    }

    /// Doubles the length of the parts.
    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        let mut parts: BTreeMap<u64, Second> = BTreeMap::new();
        for (at, part) in &self.parts {
            let sum = parts.entry(at / 2).or_default();
            sum.first += part.first;
            sum.retries += part.retries;
        }
        self.parts = parts;
    }

    /// Returns the parts in order: start in nanoseconds, length, attempts.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u64, Second)> {
        self.parts.iter().map(|(at, part)| (at.saturating_mul(self.width), *part))
    }

    pub(crate) const fn width(&self) -> u64 {
        self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(delays: impl IntoIterator<Item = u64>) -> Step {
        let mut histogram = Delays::default();
        delays.into_iter().for_each(|delay| histogram.add(delay));
        histogram.step().unwrap()
    }

    #[test]
    fn equal_delays_are_one_step_and_drawn_ones_are_not() {
        let equal = step((0..100).map(|n| 200_000_000 + n * 50_000));
        assert!(equal.share > 0.99 && (0.97..1.03).contains(&(equal.delay as f64 / 2e8)), "{equal:?}");
        // Full jitter up to 200 ms, and ±20 % around it.
        assert!(step((1..=200).map(|ms| ms * 1_000_000)).share < 0.1);
        assert!(step((0..=200).map(|n| 160_000_000 + n * 400_000)).share < 0.25);
        assert_eq!(step([0, 10, 900_000]), Step { delay: 0, share: 1.0, samples: 3 });
        assert!(step([u64::MAX]).delay > 1 << 60);
        assert_eq!(Delays::default().step(), None);
    }

    #[test]
    fn parts_are_seconds_until_there_are_too_many() {
        let mut timeline = Timeline::default();
        timeline.add(1_500_000_000, false);
        timeline.add(1_900_000_000, true);
        assert_eq!(timeline.parts().next(), Some((SECOND, Second { first: 1, retries: 1 })));
        for at in 0..3 * MAX_PARTS as u64 {
            timeline.add(at * SECOND, false);
        }
        assert_eq!(timeline.width(), 4 * SECOND);
        assert!(timeline.parts().count() <= MAX_PARTS);
        let all: u64 = timeline.parts().map(|(_, part)| part.first + part.retries).sum();
        assert_eq!(all, 2 + 3 * MAX_PARTS as u64);
        // A clock that is far off does not take many steps.
        timeline.add(u64::MAX, false);
        assert_eq!(timeline.width(), 4 * SECOND);
    }
}
