//! The store's side: the script of `stagger-redis` in Rust. A test there compares the two.

use std::collections::BTreeMap;

use crate::claim::{Claim, Lease, Limits, Reply, Report, SECOND, Timing, WRAP};
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

/// What belongs to the fleet. `tokens + reserve + outstanding` is never earned above the capacity.
///
/// ```text
///   refill, rewards, and what is handed back
///        │ while settling     │ otherwise
///        ▼                    ▼                 grant
///     reserve ─── settled ─► tokens ─────────────────────────► outstanding ───► spent, or held by a process
///                            (negative: the fleet's debt)      (all leases)     whose lease has ended
/// ```
///
/// A lease that has ended is no longer outstanding, and returns to nobody: whether it was spent, only its process
/// knows. That one hands it back, or says that it was spent, if it ever comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The time at which the bucket was made: it tells the bucket from one that was lost before.
    epoch: u64,
    tokens: i64,
    /// Up to when the refill has been counted.
    at: i64,
    outstanding: i64,
    reserve: i64,
    /// Before this nothing is granted, because not all processes have reported yet what they hold and have spent.
    settle: i64,
}

/// What a process has reported, and what it was granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Record {
    lease: i64,
    spent: u64,
    earned: u64,
    number: u64,
}

impl State {
    /// Creates the state of a target that the store does not know.
    fn new(claim: &Claim, timing: &Timing, now: i64) -> Self {
        let mut state = Self {
            epoch: now as u64,
            tokens: claim.limits.initial as i64,
            at: now,
            outstanding: 0,
            reserve: 0,
            settle: 0,
        };
        if claim.epoch != 0 {
            // The bucket was lost, and what it had may have been spent.
            state.tokens = 0;
            state.settle = now + settling(timing);
        }
        state
    }

    /// Notes the time, and returns how much has passed since the last report.
    fn pass_time(&mut self, report: &Report, timing: &Timing, now: i64) -> i64 {
        let mut elapsed = now - self.at;
        if elapsed > timing.lease as i64 {
            // Nobody has called for a whole lease, or the clock has jumped: all processes report before anything is
            // granted.
            self.settle = now + settling(timing);
        }
        // After a step of the clock backwards, settling would last until the old time is reached again.
        self.settle = self.settle.min(now + settling(timing));
        if let (true, Some(expected)) = (report.resync, report.expected) {
            // The caller's clock has gone on as the store's was: less time has passed if that has jumped.
            elapsed = elapsed.min(expected as i64 - self.at);
        }
        elapsed.max(0)
    }

    /// Takes what was kept in reserve if all processes have reported by now.
    fn take_reserve(&mut self, capacity: i64, is_settling: bool) {
        if !is_settling {
            self.tokens = (capacity - self.outstanding).min(self.tokens + self.reserve);
            self.reserve = 0;
        }
    }

    /// Adds what time has earned. What earns less than a millionth of a token waits for the next call.
    fn refill(&mut self, limits: &Limits, elapsed: i64, now: i64, is_settling: bool) {
        self.at = now;
        if limits.refill > 0 {
            let refill = limits.refill as f64;
            let refilled = (refill * elapsed as f64 / SECOND as f64).floor();
            let took = (refilled * SECOND as f64 / refill).ceil();
            self.at = now - (elapsed - took as i64).max(0);
            self.earn(refilled as i64, limits.capacity as i64, is_settling);
        }
    }

    /// Adds what time or successes have earned, as far as there is room: what is known never grows above the capacity.
    fn earn(&mut self, amount: i64, capacity: i64, is_settling: bool) {
        let amount = amount.min(capacity - self.outstanding - self.tokens - self.reserve).max(0);
        self.put(amount, is_settling);
    }

    fn put(&mut self, amount: i64, is_settling: bool) {
        if is_settling { self.reserve += amount } else { self.tokens += amount }
    }

    /// Returns what is left of a lease after the process has reported what it spent, earned and holds.
    fn settle_account(&mut self, claim: &Claim, known: Record, is_settling: bool) -> i64 {
        let capacity = claim.limits.capacity as i64;
        let mut lease = known.lease - difference(claim.spent, known.spent);
        let earned = difference(claim.earned, known.earned);
        if lease < 0 {
            // A fleet is without retries for at most the time of one capacity. What was spent of what processes have
            // refilled alone is no debt: that is earned, and in reserve until all have reported.
            let least = -capacity - self.reserve - earned.max(0);
            self.tokens = (self.tokens + lease).max(least);
            lease = 0;
        }
        let held = claim.held as i64;
        if held > lease {
            // It holds more than was known. What it holds of a lost bucket was granted there.
            if claim.epoch == 0 || claim.epoch == self.epoch {
                self.tokens -= held - lease;
            }
            lease = held;
        }
        self.outstanding += lease;
        self.earn(earned, capacity, is_settling);
        self.outstanding -= lease;
        lease
    }

    /// Grants tokens, or takes back those that are not wanted, and returns the lease. `demanding` processes want more,
    /// and `before` of them have waited longer: if not each can have a retry, those come first.
    fn grant(
        &mut self,
        mut lease: i64,
        want: i64,
        cost: i64,
        (demanding, before): (i64, i64),
        is_settling: bool,
    ) -> i64 {
        if lease > want.max(0) {
            self.put(lease - want.max(0), is_settling);
            lease = want.max(0);
        } else if !is_settling {
            let part = self.tokens.div_euclid(demanding).max((self.tokens - before * cost).min(cost));
            let grant = (want - lease).min(part).min(self.tokens);
            // Whole retries: what is left of one in each of many processes would be of use to none.
            let whole = (lease + grant) / cost * cost;
            if whole > lease {
                self.tokens -= whole - lease;
                lease = whole;
            }
        }
        self.outstanding += lease;
        lease
    }
}

/// Returns how long the store waits for the reports of all processes: a period, its jitter, and the way of the report.
const fn settling(timing: &Timing) -> i64 {
    timing.period as i64 * 5 / 4
}

/// Returns by how much a counter has grown. Counters wrap, so that they stay exact however long a process lives.
fn difference(new: u64, old: u64) -> i64 {
    let d = new.wrapping_sub(old) % WRAP;
    if d >= WRAP / 2 { d as i64 - WRAP as i64 } else { d as i64 }
}

impl Bucket {
    /// Handles a report of the process `id` on this one target, at `now` by the store's clock. The reply has one lease.
    pub fn report(&mut self, id: u64, report: &Report, claim: &Claim, timing: &Timing, now: u64) -> Reply {
        if report.contradicts(now) {
            return Reply::Again;
        }
        Reply::Done { now, leases: vec![self.renew(id, report, claim, timing, now as i64)] }
    }

    /// Renews the lease of a process; `None` if the report is old. The steps are those of `tokens.lua` in
    /// `stagger-redis`, in its order.
    ///
    /// For example, with a capacity of 500, a refill of 50 a second, a cost of 5, and two processes that both want
    /// more:
    ///
    /// | step | tokens | lease of this process | outstanding |
    /// |---|--:|--:|--:|
    /// | its last report | 300 | 40 | 140 |
    /// | a second of refill | 350 | 40 | 140 |
    /// | it has spent 30, and holds 10 | 350 | 10 | 100 besides its own |
    /// | it wants 200, and gets half of the tokens | 175 | 185 | 285 |
    fn renew(&mut self, id: u64, report: &Report, claim: &Claim, timing: &Timing, now: i64) -> Option<Lease> {
        if self.records.get(&id).is_some_and(|record| record.number >= report.number) {
            // Connections are not ordered: this report was overtaken.
            return None;
        }
        let (capacity, cost) = (claim.limits.capacity as i64, claim.limits.cost as i64);
        let mut state = match self.state {
            Some(state) => state,
            None => {
                self.holders = Holders::default();
                State::new(claim, timing, now)
            }
        };
        let elapsed = state.pass_time(report, timing, now);
        let is_settling = now < state.settle;

        // After a gap all leases have ended, and yet their processes hold them: what was granted leaves no room for
        // more until all have reported.
        if !is_settling {
            state.outstanding -= self.holders.end_leases(&mut self.records, |record| record.lease, timing, now);
        }
        if self.holders.len() == 0 {
            // The set of leases alone was evicted: nobody is known to hold anything, and each process claims what it
            // holds.
            state.outstanding = 0;
            self.holders.forget_waiting();
        }
        state.take_reserve(capacity, is_settling);
        // Processes that were without the store have refilled their own shares since their leases ended, and report it
        // as earned.
        let counted = elapsed.min(timing.lease as i64 - settling(timing));
        state.refill(&claim.limits, counted, now, is_settling);

        let known = self.known(id, claim);
        if self.holders.has_lease(id) {
            state.outstanding -= known.lease;
        }
        let left = state.settle_account(claim, known, is_settling);
        let want = claim.want.map_or(-1, |want| want as i64);
        // The least that an idle process wants is no demand, but a retry that it lacks is.
        let place = self.holders.queue(id, want > 2 * cost || want - left >= cost, now);
        let lease = state.grant(left, want, cost, place, is_settling);
        if lease > left || want - lease < cost {
            self.holders.served(id, now);
        }

        self.holders.renew(id, claim.want.is_none(), timing, now);
        self.records.insert(id, Record { lease, spent: claim.spent, earned: claim.earned, number: report.number });
        self.state = Some(state);
        Some(Lease { epoch: state.epoch, tokens: lease as u64, processes: self.holders.len(), left: state.tokens })
    }

    /// Returns what is known of the process that claims. The counters of one that is not known begin with its claim.
    fn known(&self, id: u64, claim: &Claim) -> Record {
        match self.records.get(&id) {
            Some(record) if self.holders.is_known(id) => *record,
            // Its lease was evicted, and no longer counts as outstanding.
            Some(record) => Record { lease: 0, ..*record },
            None => Record { lease: 0, spent: claim.spent, earned: claim.earned, number: 0 },
        }
    }

    /// Forgets who has a lease, as if the store had evicted the set of leases.
    pub fn evict_leases(&mut self) {
        self.holders.evict_leases();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: u64 = 1_000_000;
    const LIMITS: Limits =
        Limits { capacity: 500 * TOKEN, refill: 50 * TOKEN, initial: 500 * TOKEN, cost: 5 * TOKEN, reward: 0 };
    const EPOCH: u64 = 1_000 * SECOND;

    /// Reports that the process has spent and earned so many tokens since its start, and wants as many as there are.
    /// Returns its tokens, and those that are left.
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
            // The store is away. The first process spends its lease, and from the end of it on each spends its share of
            // the refill.
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
