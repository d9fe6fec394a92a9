//! The store's side: the script of `stagger-redis` in Rust. A test there compares the two.

use std::collections::BTreeMap;

use crate::claim::{Claim, Lease, Reply, Report, SECOND, Timing, WRAP};
use crate::holders::Holders;

// It changes what the store keeps, to plant faults: private fields.
#[cfg(test)]
#[path = "../tests/model/bucket.rs"]
mod model;

/// The store's side of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bucket {
    state: Option<State>,
    records: BTreeMap<u64, Record>,
    holders: Holders,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    epoch: u64,
    tokens: i64,
    at: i64,
    outstanding: i64,
    reserve: i64,
    settle: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Record {
    lease: i64,
    spent: u64,
    earned: u64,
    number: u64,
}

/// Faults for the exploration to find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// None.
    #[default]
    None,
    /// Processes report differences, and the store adds them up.
    Differences,
    /// The store grants at once after a gap.
    NoSettling,
    /// The store forgets the counters of a process with its lease.
    ForgetsCounters,
    /// The store takes times of before for its own after its clock has stepped back.
    TrustsOldTimes,
}

impl State {
    fn earn(&mut self, amount: i64, capacity: i64, is_settling: bool) {
        let amount = amount.min(capacity - self.outstanding - self.tokens - self.reserve).max(0);
        if is_settling { self.reserve += amount } else { self.tokens += amount }
    }
}

fn difference(new: u64, old: u64) -> i64 {
    let d = new.wrapping_sub(old) % WRAP;
    if d >= WRAP / 2 { d as i64 - WRAP as i64 } else { d as i64 }
}

impl Bucket {
    /// Handles a report of the process `id` on this one target, at `now` by the store's clock. The reply has one lease.
    pub fn report(&mut self, id: u64, report: &Report, claim: &Claim, timing: &Timing, now: u64) -> Reply {
        self.report_with(id, report, claim, timing, now, Fault::None)
    }

    /// Handles a report as [`report`](Self::report) does, with a fault.
    pub(crate) fn report_with(
        &mut self,
        id: u64,
        report: &Report,
        claim: &Claim,
        timing: &Timing,
        now: u64,
        fault: Fault,
    ) -> Reply {
        if report.contradicts(now) {
            return Reply::Again;
        }
        Reply::Done { now, leases: vec![self.renew(id, report, claim, timing, now as i64, fault)] }
    }

    fn renew(
        &mut self,
        id: u64,
        report: &Report,
        claim: &Claim,
        timing: &Timing,
        now: i64,
        fault: Fault,
    ) -> Option<Lease> {
        if self.records.get(&id).is_some_and(|record| record.number >= report.number) {
            return None;
        }
        let (period, length) = (timing.period as i64, timing.lease as i64);
        let limits = claim.limits;
        let (capacity, refill, cost) = (limits.capacity as i64, limits.refill as f64, limits.cost as i64);
        let settled = now + period * 5 / 4;
        let mut state = self.state.unwrap_or_else(|| {
            self.holders = Holders::default();
            let new = State {
                epoch: now as u64,
                tokens: limits.initial as i64,
                at: now,
                outstanding: 0,
                reserve: 0,
                settle: 0,
            };
            if claim.epoch == 0 {
                return new;
            }
            let missed = (refill * (period * 5 / 4) as f64 / SECOND as f64).floor();
            State { tokens: -missed as i64, settle: settled, ..new }
        });
        let mut dt = now - state.at;
        if dt > length && fault != Fault::NoSettling {
            state.settle = settled;
        }
        if fault != Fault::TrustsOldTimes {
            state.settle = state.settle.min(settled);
        }
        if let (Some(expected), true) = (report.expected, report.resync) {
            dt = dt.min(expected as i64 - state.at);
        }
        let dt = dt.max(0);
        let is_settling = now < state.settle;

        let (mut returned, records) = (0, &mut self.records);
        self.holders.end_leases(timing, now, |other| {
            if let Some(record) = records.get_mut(&other) {
                returned += record.lease;
                record.lease = 0;
            }
            if fault == Fault::ForgetsCounters {
                records.remove(&other);
            }
        });
        self.holders.forget(now, |other| {
            records.remove(&other);
        });
        state.outstanding -= returned;
        if self.holders.len() == 0 {
            state.outstanding = 0;
        }

        if is_settling {
            state.reserve += returned;
        } else {
            state.tokens = (capacity - state.outstanding).min(state.tokens + state.reserve + returned);
            state.reserve = 0;
        }
        let counted = dt.min(length - period * 5 / 4);
        state.at = now;
        if refill > 0.0 {
            let refilled = (refill * counted as f64 / SECOND as f64).floor();
            let took = (refilled * SECOND as f64 / refill).ceil();
            state.at = now - (counted - took as i64).max(0);
            state.earn(refilled as i64, capacity, is_settling);
        }

        let known = self.records.get(&id).copied();
        let mut lease = 0;
        let (mut known_spent, mut known_earned) = (claim.spent, claim.earned);
        if let Some(record) = known {
            lease = if self.holders.has_lease(id) { record.lease } else { 0 };
            (known_spent, known_earned) = (record.spent, record.earned);
        }
        if fault == Fault::Differences {
            // What arrives is the difference itself.
            (known_spent, known_earned) = (0, 0);
        }
        state.outstanding -= lease;
        lease -= difference(claim.spent, known_spent);
        let earned = difference(claim.earned, known_earned);
        if lease < 0 {
            // What was spent of what processes have refilled alone is no debt: that is earned, and in reserve until all have reported.
            let least = -capacity - state.reserve - earned.max(0);
            state.tokens = (state.tokens + lease).max(least);
            lease = 0;
        }
        let held = claim.held as i64;
        if held > lease {
            if claim.epoch == 0 || claim.epoch == state.epoch {
                state.tokens -= held - lease;
            }
            lease = held;
        }
        state.outstanding += lease;
        state.earn(earned, capacity, is_settling);
        state.outstanding -= lease;

        let want = claim.want.map_or(-1, |want| want as i64);
        let demanding = self.holders.demanding(id, want > 2 * cost, timing, now);
        if lease > want.max(0) {
            let surplus = lease - want.max(0);
            if is_settling {
                state.reserve += surplus
            } else {
                state.tokens += surplus
            }
            lease = want.max(0);
        } else if !is_settling {
            let grant = (want - lease).min(state.tokens.div_euclid(demanding).max(cost)).min(state.tokens);
            let whole = (lease + grant) / cost * cost;
            if whole > lease {
                state.tokens -= whole - lease;
                lease = whole;
            }
        }
        state.outstanding += lease;
        self.holders.renew(id, claim.want.is_none(), timing, now);
        self.records.insert(id, Record { lease, spent: claim.spent, earned: claim.earned, number: report.number });
        self.state = Some(state);
        Some(Lease { epoch: state.epoch, tokens: lease as u64, processes: self.holders.len(), left: state.tokens })
    }

    /// Forgets who has a lease, as if the store had evicted the set of leases.
    pub fn evict_leases(&mut self) {
        self.holders.evict_leases();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Limits;

    const TOKEN: u64 = 1_000_000;
    const LIMITS: Limits =
        Limits { capacity: 500 * TOKEN, refill: 50 * TOKEN, initial: 500 * TOKEN, cost: 5 * TOKEN, reward: 0 };
    const EPOCH: u64 = 1_000 * SECOND;

    /// Reports that the process has spent and earned so many tokens since its start, and wants as many as there are. Returns its
    /// tokens, and those that are left.
    fn report(bucket: &mut Bucket, id: u64, (number, at): (u64, u64), spent: u64, earned: u64) -> (i64, i64) {
        let report = Report { number, expected: None, resync: false };
        let epoch = if number == 1 { 0 } else { EPOCH };
        let (spent, earned) = (spent * TOKEN, earned * TOKEN);
        let claim = Claim { epoch, spent, earned, held: 0, want: Some(LIMITS.capacity), limits: LIMITS };
        match bucket.report(id, &report, &claim, &Timing::DEFAULT, EPOCH + at) {
            Reply::Done { leases, .. } => {
                let lease = leases[0].unwrap();
                ((lease.tokens / TOKEN) as i64, lease.left / TOKEN as i64)
            }
            Reply::Again => panic!("again"),
        }
    }

    #[test]
    fn what_processes_have_spent_of_their_own_refill_is_neither_a_debt_nor_forgotten() {
        for away in [4, 10, 20, 300] {
            let mut bucket = Bucket::default();
            let leased: i64 = (0..8).map(|id| report(&mut bucket, id, (1, 0), 0, 0).0).sum();
            assert_eq!(leased, 500, "the first one asks for all of it");
            // The store is away. The first process spends its lease, and from the end of it on each spends its share of the refill.
            let own = (away - 3) * 50 / 8;
            for id in 0..8 {
                let spent = if id == 0 { 500 + own } else { own };
                report(&mut bucket, id, (2, away * SECOND + id), spent, own);
            }
            let (tokens, left) = report(&mut bucket, 1, (3, (away + 2) * SECOND), own, own);
            // The refill while leases held, and while all reported.
            let refilled = 50 * 4;
            assert!((50..=refilled).contains(&(tokens + left)), "{away} s: {tokens} and {left}");
        }
    }

    #[test]
    fn a_debt_is_at_most_one_capacity() {
        let mut bucket = Bucket::default();
        report(&mut bucket, 0, (1, 0), 0, 0);
        report(&mut bucket, 0, (2, SECOND), 10_000, 0);
        let (tokens, left) = report(&mut bucket, 0, (3, 2 * SECOND), 10_000, 0);
        assert_eq!((tokens, left), (0, 50 - 500));
    }
}
