use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use stagger_core::{Guard, Instant};
use stagger_sim::outage::{FleetConditions, FleetRun, LeaseFigures, StoreFaults};

use super::member::{Answer, Exchange, Lease, Member};
use super::tokens::LeasedTokens;
use crate::bucket::Bucket;
use crate::claim::{Limits, Reply, SECOND, Timing};
use crate::process::{CONNECT_TIMEOUT, RESPONSE_TIMEOUT};

/// The processes that share a budget, their store, and the messages between them. Times are in microseconds.
#[derive(Debug)]
pub(super) struct Fleet {
    /// By the number of the process; `None` if it has no lease.
    members: Vec<Option<Member>>,
    store: Bucket,
    faults: Faults,
    has_been_emptied: bool,
    /// Number of processes that are cut off: the first ones.
    cut: usize,
    one_way: u64,
    /// By the clock of the fleet, which is this much ahead of the simulation.
    begun: u64,
    horizon: u64,
    events: BinaryHeap<Reverse<(u64, u32, Kind)>>,
    audit: Audit,
    /// What the faults may cost, in millionths of a token.
    allowed: u64,
    has_been_cut: bool,
    has_been_down: bool,
    local: u32,
    /// Since when all processes have leases: 0 from the start.
    leased_at: Option<u64>,
    figures: LeaseFigures,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Timer,
    Connected,
    AtStore,
    Reply,
    /// No reply came in time, or no connection.
    TimedOut,
}

/// The store's clock differs from those of the processes.
const STORE_EPOCH: u64 = 1_000_000_000;

impl Fleet {
    /// Creates the fleet of the processes that share the budget.
    pub(super) fn new(tokens: LeasedTokens, conditions: &FleetConditions) -> Self {
        let begun = micros(conditions.begun);
        let processes = conditions.shares.iter().filter(|shares| **shares).count();
        let count = u32::try_from(processes).unwrap_or(u32::MAX);
        let member = |(id, shares): (usize, &bool)| {
            if !shares {
                return None;
            }
            Some(Member::new(Arc::new(Lease::new(tokens)), count, conditions.seed.for_call(id as u64)))
        };
        let members: Vec<_> = conditions.shares.iter().enumerate().map(member).collect();
        let faults = Faults::new(&conditions.faults, begun);
        let mut fleet = Self {
            cut: faults.cut_of(members.len()),
            members,
            store: Bucket::default(),
            faults,
            has_been_emptied: false,
            one_way: micros(conditions.one_way),
            begun,
            horizon: micros(conditions.horizon).saturating_add(begun),
            events: BinaryHeap::new(),
            audit: Audit::new(tokens.limits),
            allowed: 0,
            has_been_cut: false,
            has_been_down: false,
            local: 0,
            leased_at: Some(0),
            figures: LeaseFigures::default(),
        };
        fleet.figures.processes = count;
        (0..fleet.members.len()).for_each(|id| fleet.set_timer(id, 0));
        fleet
    }

    /// Returns a time of the simulation by the clock of the fleet.
    const fn clock(&self, now: Instant) -> u64 {
        now.as_nanos() / 1_000 + self.begun
    }

    fn advance_to(&mut self, now: u64) {
        while self.events.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((at, id, kind))) = self.events.pop() else { return };
            self.handle(at, id as usize, kind);
        }
    }

    fn handle(&mut self, at: u64, id: usize, kind: Kind) {
        self.note_faults(at);
        let Some(member) = &mut self.members[id] else { return };
        match (kind, member.exchange) {
            (Kind::Timer, _) if member.timer != at => return,
            (Kind::Timer, _) => {
                if member.tick(at) {
                    self.local += 1;
                    self.note_local(at);
                }
                self.report_if_due(id, at);
            }
            (Kind::Connected, _) => {
                member.is_open = true;
                self.send(id, at);
            }
            (Kind::AtStore, Exchange::Sent { report, claim, sent }) => {
                if self.faults.has_lost_data(at) && !core::mem::replace(&mut self.has_been_emptied, true) {
                    self.store = Bucket::default();
                }
                let reply = self.store.report(id as u64, &report, &claim, &Timing::DEFAULT, STORE_EPOCH + at);
                let reply = match reply {
                    Reply::Again => Answer::Again,
                    Reply::Done { now: store, leases } => match leases[..] {
                        [Some(grant)] => Answer::Granted { store, grant },
                        _ => Answer::Old,
                    },
                };
                member.exchange = Exchange::Replied { reply, sent };
                let (heard, latest) = (at + self.one_way, sent + micros(RESPONSE_TIMEOUT));
                if self.is_reachable(id, at) && heard <= latest {
                    self.events.push(Reverse((heard, id as u32, Kind::Reply)));
                } else {
                    self.events.push(Reverse((latest, id as u32, Kind::TimedOut)));
                }
                return;
            }
            (Kind::Reply, Exchange::Replied { reply, sent }) => {
                member.exchange = Exchange::None;
                if member.hear(reply, sent, at) {
                    self.local -= 1;
                    self.note_local(at);
                }
            }
            (Kind::TimedOut, _) => {
                member.exchange = Exchange::None;
                member.fail(at);
            }
            (Kind::AtStore | Kind::Reply, _) => {}
        }
        self.set_timer(id, at);
    }

    fn report_if_due(&mut self, id: usize, now: u64) {
        let Some(member) = self.members[id].as_mut().filter(|member| member.is_due(now)) else { return };
        if member.is_open {
            return self.send(id, now);
        }
        member.exchange = Exchange::Connecting;
        let (answered, longest) = (2 * self.one_way, micros(CONNECT_TIMEOUT));
        let event = if answered <= longest && self.is_reachable(id, now + self.one_way) {
            (now + answered, Kind::Connected)
        } else {
            (now + longest, Kind::TimedOut)
        };
        self.events.push(Reverse((event.0, id as u32, event.1)));
    }

    fn send(&mut self, id: usize, now: u64) {
        let Some(member) = &mut self.members[id] else { return };
        member.send(now);
        if (self.begun..self.horizon).contains(&now) {
            member.reports += 1;
            self.figures.reports += 1;
            self.figures.reports_max = self.figures.reports_max.max(member.reports);
        }
        let event = if self.is_reachable(id, now + self.one_way) {
            (now + self.one_way, Kind::AtStore)
        } else {
            (now + micros(RESPONSE_TIMEOUT), Kind::TimedOut)
        };
        self.events.push(Reverse((event.0, id as u32, event.1)));
    }

    fn set_timer(&mut self, id: usize, now: u64) {
        let Some(member) = &mut self.members[id] else { return };
        let next = member.next(now);
        if next != member.timer {
            member.timer = next;
            self.events.push(Reverse((next, id as u32, Kind::Timer)));
        }
    }

    fn is_reachable(&self, id: usize, at: u64) -> bool {
        !(self.faults.is_down(at) || id < self.cut && self.faults.is_cut(at))
    }

    /// Computes at the begin of a fault what it may cost beyond one bucket.
    fn note_faults(&mut self, at: u64) {
        if let Some([from, until]) = self.faults.cut.filter(|[from, _]| at >= *from && !self.has_been_cut) {
            self.has_been_cut = true;
            // Their shares of the capacity and of the refill.
            let (capacity, refilled) = (self.audit.limits.capacity, self.audit.limits.refilled(until - from));
            let cut = self.members[..self.cut].iter().flatten();
            self.allowed += cut.map(|member| member.share(capacity + refilled)).sum::<u64>();
        }
        if let Some([from, until]) = self.faults.down.filter(|[from, _]| at >= *from && !self.has_been_down) {
            self.has_been_down = true;
            // The shares of processes beyond those that are known.
            let refilled = self.audit.limits.refilled(until - from);
            let members = || self.members.iter().flatten();
            self.allowed += members().map(|member| member.share(refilled)).sum::<u64>().saturating_sub(refilled);
            if self.faults.is_lost && members().any(Member::is_new) {
                self.allowed += self.audit.limits.capacity;
            }
        }
    }

    /// Notes how many processes use their local share, before the horizon.
    fn note_local(&mut self, at: u64) {
        if at <= self.horizon {
            self.figures.local_max = self.figures.local_max.max(self.local);
            self.leased_at = (self.local == 0).then_some(at);
        }
    }
}

impl FleetRun for Fleet {
    fn budget(&self, process: u32) -> Option<Arc<dyn Guard>> {
        let member = self.members.get(process as usize)?.as_ref()?;
        Some(Arc::clone(&member.lease) as _)
    }

    fn advance(&mut self, now: Instant) {
        self.advance_to(self.clock(now));
    }

    /// Notes what a call of this process has spent or earned, and lets the process report if it runs short of tokens.
    fn on_call(&mut self, process: u32, now: Instant) {
        let (id, now) = (process as usize, self.clock(now));
        let Some(member) = &mut self.members[id] else { return };
        let (spent, earned) = member.take_counts();
        if (spent != 0 || earned != 0) && now < self.horizon {
            self.audit.note(spent, earned, now);
        }
        if member.lease.take_wish() {
            self.report_if_due(id, now);
            self.set_timer(id, now);
        }
    }

    fn figures(mut self: Box<Self>) -> LeaseFigures {
        self.advance_to(self.horizon);
        let last_end = self.faults.last_end();
        let mut figures = self.figures;
        figures.overshoot = self.audit.overshoot();
        figures.overshoot_bound =
            (self.allowed + self.audit.most_late()) as f64 / self.audit.limits.capacity.max(1) as f64;
        figures.restored = last_end.zip(self.leased_at).map(|(end, at)| Duration::from_micros(at.saturating_sub(end)));
        figures
    }
}

/// The faults of the store by the clock of the fleet, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Faults {
    down: Option<[u64; 2]>,
    is_lost: bool,
    cut: Option<[u64; 2]>,
    cut_millionths: u64,
}

impl Faults {
    /// Creates the faults of a fleet whose clock is this much ahead of the simulation.
    fn new(faults: &StoreFaults, begun: u64) -> Self {
        let times = |times: Option<[Duration; 2]>| times.map(|times| times.map(|at| micros(at) + begun));
        Self {
            down: times(faults.down_time()),
            is_lost: faults.loses_data(),
            cut: times(faults.cut_time()),
            cut_millionths: u64::from(faults.cut_ratio().as_millionths()),
        }
    }

    /// Returns when the last fault ends.
    fn last_end(&self) -> Option<u64> {
        [self.down, self.cut].into_iter().flatten().map(|[_, until]| until).max()
    }

    /// Returns how many of so many processes are cut off: the first ones.
    const fn cut_of(&self, processes: usize) -> usize {
        if self.cut.is_none() { 0 } else { (processes as u64 * self.cut_millionths / 1_000_000) as usize }
    }

    fn is_down(&self, at: u64) -> bool {
        is_within(self.down, at)
    }

    fn is_cut(&self, at: u64) -> bool {
        is_within(self.cut, at)
    }

    /// Returns whether the store has come back without its data by now.
    fn has_lost_data(&self, at: u64) -> bool {
        self.is_lost && self.down.is_some_and(|[_, until]| at >= until)
    }
}

fn is_within(times: Option<[u64; 2]>, at: u64) -> bool {
    times.is_some_and(|[from, until]| (from..until).contains(&at))
}

/// Converts a duration to whole microseconds, saturating.
fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

/// One bucket without a fleet, which pays for every retry as it is granted: what a budget of leases is measured by.
#[derive(Clone, Debug)]
struct Audit {
    limits: Limits,
    /// In millionths of a millionth of a token: what a microsecond refills is whole.
    level: i128,
    lowest: i128,
    at: u64,
    /// What was earned lately and may not have been reported: times, and amounts in millionths of a token.
    unreported: VecDeque<(u64, u64)>,
    late: u64,
    most_late: u64,
}

/// How late a success is reported: a period, a tenth of it, and two reports that collide.
const LATEST: u64 = SECOND * 3 / 2;
const FRACTION: i128 = SECOND as i128;

impl Audit {
    const fn new(limits: Limits) -> Self {
        let level = limits.initial as i128 * FRACTION;
        Self { limits, level, lowest: 0, at: 0, unreported: VecDeque::new(), late: 0, most_late: 0 }
    }

    /// Notes what was spent and earned at `now`, in millionths of a token.
    fn note(&mut self, spent: i64, earned: u64, now: u64) {
        let elapsed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        let gained = i128::from(elapsed) * i128::from(self.limits.refill) + i128::from(earned) * FRACTION;
        let full = i128::from(self.limits.capacity) * FRACTION;
        self.level = (self.level + gained).min(full) - i128::from(spent) * FRACTION;
        self.lowest = self.lowest.min(self.level);
        while let Some(&(_, reported)) = self.unreported.front().filter(|(at, _)| *at + LATEST < now) {
            self.unreported.pop_front();
            self.late -= reported;
        }
        if earned > 0 {
            self.unreported.push_back((now, earned));
            self.late += earned;
            self.most_late = self.most_late.max(self.late);
        }
    }

    /// Returns the most that successes had earned, in millionths of a token, before they were reported: a full bucket
    /// forgets at once what it earns, and the store only when it learns of it.
    const fn most_late(&self) -> u64 {
        self.most_late
    }

    /// Returns how far the bucket fell below zero, as a ratio of its capacity.
    fn overshoot(&self) -> f64 {
        -self.lowest as f64 / (self.limits.capacity as f64 * FRACTION as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: u64 = 1_000_000;

    #[test]
    fn a_bucket_is_refilled_up_to_its_capacity_and_remembers_how_far_it_fell() {
        let limits = Limits { capacity: 10 * TOKEN, refill: TOKEN, initial: 10 * TOKEN, cost: TOKEN, reward: 0 };
        let mut audit = Audit::new(limits);
        audit.note(8_000_000, 0, 5 * SECOND);
        audit.note(4_000_000, 0, 7 * SECOND);
        assert!(audit.overshoot().abs() < 1e-9, "8 and 4 of 10, and 2 refilled after the first: {}", audit.overshoot());
        audit.note(2_000_000, 1_000_000, 7 * SECOND);
        assert!((audit.overshoot() - 0.1).abs() < 1e-9, "one token below zero");
        audit.note(0, 0, 100 * SECOND);
        audit.note(10_000_000, 0, 100 * SECOND);
        assert!((audit.overshoot() - 0.1).abs() < 1e-9, "full again, and not fuller");
    }

    #[test]
    fn what_is_reported_late_is_what_was_earned_within_a_second_and_a_half() {
        let limits = Limits { capacity: 10 * TOKEN, refill: 0, initial: 10 * TOKEN, cost: TOKEN, reward: TOKEN };
        let mut audit = Audit::new(limits);
        for tenth in 0..100 {
            audit.note(0, TOKEN, tenth * SECOND / 10);
        }
        assert_eq!(audit.most_late(), 16 * TOKEN);
    }
}
