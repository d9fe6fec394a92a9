//! Which processes have a lease on one target, as the store keeps it.

use core::hash::{Hash, Hasher};
use std::collections::{BTreeMap, BTreeSet};

use crate::claim::Timing;

/// How long the counters of a process are kept after its lease has ended.
const KEPT: i64 = 600_000_000;
/// The most processes whose lease ends with one report.
const MOST: usize = 100;

/// The processes that have a lease on one target, those that want more, and those whose lease has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Holders {
    leases: Times,
    /// Since when a process waits: the first of them are served first.
    waiting: Times,
    gone: Times,
}

/// Processes by a time of theirs, like a sorted set of the store. A fleet may have ten thousand of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Times {
    of: BTreeMap<u64, i64>,
    ordered: BTreeSet<(i64, u64)>,
}

impl Hash for Times {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Both have the same members.
        self.of.hash(state);
    }
}

impl Times {
    fn insert(&mut self, id: u64, at: i64) {
        self.remove(id);
        self.of.insert(id, at);
        self.ordered.insert((at, id));
    }

    fn remove(&mut self, id: u64) {
        if let Some(at) = self.of.remove(&id) {
            self.ordered.remove(&(at, id));
        }
    }

    /// Returns the first members that have ended at `now`, as the store orders them: by time, then by name.
    fn ended(&self, now: i64) -> Vec<u64> {
        self.ordered.range(..=(now, u64::MAX)).map(|&(_, id)| id).take(MOST).collect()
    }

    /// Returns the first members with a later time.
    fn after(&self, time: i64) -> Vec<u64> {
        self.ordered.range((time.saturating_add(1), 0)..).map(|&(_, id)| id).take(MOST).collect()
    }

    /// Returns how many members have an earlier time.
    fn before(&self, time: i64) -> i64 {
        self.ordered.range(..(time, 0)).count() as i64
    }
}

impl Holders {
    /// Ends the leases that were not renewed, and returns the sum of them; `lease` is where a record has it. After a
    /// step of the clock backwards, no lease is longer than a new one. Records stay for ten minutes: a process that was
    /// cut off reports what it has spent since. It waits for nothing any more.
    pub(crate) fn end_leases<R>(
        &mut self,
        records: &mut BTreeMap<u64, R>,
        lease: impl Fn(&R) -> i64,
        timing: &Timing,
        now: i64,
    ) -> i64 {
        let last_end = last_end(timing, now);
        for other in self.leases.after(last_end) {
            self.leases.insert(other, last_end);
        }
        let mut returned = 0;
        for other in self.leases.ended(now) {
            if let Some(record) = records.get(&other) {
                returned += lease(record);
            }
            self.leases.remove(other);
            self.waiting.remove(other);
            self.gone.insert(other, now + KEPT);
        }
        for other in self.gone.ended(now) {
            records.remove(&other);
            self.gone.remove(other);
        }
        returned
    }

    /// Notes whether a process wants more, and returns how many do, at least 1, and how many of them have waited
    /// longer.
    pub(crate) fn queue(&mut self, id: u64, wants_more: bool, now: i64) -> (i64, i64) {
        let mut before = 0;
        if wants_more {
            let mut since = self.waiting.of.get(&id).copied().unwrap_or(i64::MAX);
            if since > now {
                // It is new, or the clock has stepped back.
                since = now;
                self.waiting.insert(id, now);
            }
            before = self.waiting.before(since);
        } else {
            self.waiting.remove(id);
        }
        ((self.waiting.of.len() as i64).max(1), before)
    }

    /// Notes that a process that waits has got something, or lacks nothing: the others come first.
    pub(crate) fn served(&mut self, id: u64, now: i64) {
        if self.waiting.of.contains_key(&id) {
            self.waiting.insert(id, now);
        }
    }

    /// Forgets who waits: without leases, those that have been killed would wait for ever, before all others.
    pub(crate) fn forget_waiting(&mut self) {
        self.waiting = Times::default();
    }

    /// Renews the lease of a process, or ends it because the process leaves.
    pub(crate) fn renew(&mut self, id: u64, is_leaving: bool, timing: &Timing, now: i64) {
        if is_leaving {
            self.leases.remove(id);
            self.gone.insert(id, now + KEPT);
        } else {
            self.leases.insert(id, last_end(timing, now));
            self.gone.remove(id);
        }
    }

    /// Returns whether the process has a lease.
    pub(crate) fn has_lease(&self, id: u64) -> bool {
        self.leases.of.contains_key(&id)
    }

    /// Returns whether the process has a lease, or had one that has ended.
    pub(crate) fn is_known(&self, id: u64) -> bool {
        self.has_lease(id) || self.gone.of.contains_key(&id)
    }

    /// Returns how many processes have a lease.
    pub(crate) fn len(&self) -> u64 {
        self.leases.of.len() as u64
    }

    /// Forgets who has a lease, as if the store had evicted the set of leases.
    pub(crate) fn evict_leases(&mut self) {
        self.leases = Times::default();
    }
}

/// Returns when a lease ends in the store that is renewed now: later than in the process, which counts from its report
/// on.
const fn last_end(timing: &Timing, now: i64) -> i64 {
    now + timing.lease as i64 * 5 / 4
}
