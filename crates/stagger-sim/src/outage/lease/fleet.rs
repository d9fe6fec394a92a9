use core::cmp::Reverse;
use core::time::Duration;
use std::collections::BinaryHeap;
use std::sync::Arc;

use stagger_core::Seed;
use stagger_lease::bucket::Bucket;
use stagger_lease::claim::{Reply, Timing};
use stagger_lease::reconnect::{CONNECT_TIMEOUT, RESPONSE_TIMEOUT};

use super::audit::Audit;
use super::faults::StoreFaults;
use super::figures::LeaseFigures;
use super::member::{Answer, Exchange, Lease, Member};
use crate::engine::time::micros;

/// The processes that share a budget, their store, and the messages between them. Times are in microseconds.
///
/// A simulation asks it to [advance](Self::advance) before each of its own events, so that leases are what they are at that time.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// By the number of the process; `None` if it has no lease.
    members: Vec<Option<Member>>,
    store: Bucket,
    faults: StoreFaults,
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
    /// Creates the fleet of the processes that have a lease; `None` if none has. It has been running for `begun` when the simulation
    /// starts.
    pub(crate) fn new<'a>(
        leases: impl Iterator<Item = Option<&'a Arc<Lease>>>,
        faults: StoreFaults,
        one_way: u64,
        begun: u64,
        horizon: u64,
        seed: Seed,
    ) -> Option<Self> {
        let leases: Vec<_> = leases.collect();
        let processes = leases.iter().flatten().count();
        let first = leases.iter().flatten().next()?;
        let (audit, count) = (Audit::new(first.limits), u32::try_from(processes).unwrap_or(u32::MAX));
        let faults = faults.later(begun);
        let member = |(id, lease): (usize, &Option<&Arc<Lease>>)| {
            Some(Member::new(Arc::clone((*lease)?), count, seed.for_call(id as u64)))
        };
        let members: Vec<_> = leases.iter().enumerate().map(member).collect();
        let mut fleet = Self {
            cut: faults.cut_of(members.len()),
            members,
            store: Bucket::default(),
            faults,
            has_been_emptied: false,
            one_way,
            begun,
            horizon: horizon.saturating_add(begun),
            events: BinaryHeap::new(),
            audit,
            allowed: 0,
            has_been_cut: false,
            has_been_down: false,
            local: 0,
            leased_at: Some(0),
            figures: LeaseFigures { processes: count, ..LeaseFigures::default() },
        };
        (0..fleet.members.len()).for_each(|id| fleet.set_timer(id, 0));
        Some(fleet)
    }

    /// Handles everything between the processes and the store up to `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        self.advance_to(now + self.begun);
    }

    fn advance_to(&mut self, now: u64) {
        while self.events.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((at, id, kind))) = self.events.pop() else { return };
            self.handle(at, id as usize, kind);
        }
    }

    /// Notes what a call of this process has spent or earned, and lets the process report if it runs short of tokens.
    pub(crate) fn on_call(&mut self, process: u32, now: u64) {
        let (id, now) = (process as usize, now + self.begun);
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

    /// Returns the figures at the end of the simulation.
    pub(crate) fn figures(mut self) -> LeaseFigures {
        self.advance_to(self.horizon);
        let last_end = self.faults.last_end();
        LeaseFigures {
            overshoot: self.audit.overshoot(),
            overshoot_bound: (self.allowed + self.audit.most_late()) as f64 / self.capacity().max(1) as f64,
            restored: last_end.zip(self.leased_at).map(|(end, at)| Duration::from_micros(at.saturating_sub(end))),
            ..self.figures
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
            // Their leases, and their share of the refill.
            let cut = self.members[..self.cut].iter().flatten();
            self.allowed += cut.map(|member| member.at_stake() + member.share(0, until - from)).sum::<u64>();
        }
        if let Some([from, until]) = self.faults.down.filter(|[from, _]| at >= *from && !self.has_been_down) {
            self.has_been_down = true;
            // The shares of processes beyond those that are known.
            let members = || self.members.iter().flatten();
            let shares = members().map(|member| member.share(member.lease.limits.capacity, until - from)).sum::<u64>();
            let whole = members().next().map_or(0, |member| member.lease.limits.refilled(until - from));
            self.allowed += shares.saturating_sub(whole + self.capacity());
            if self.faults.is_lost && members().any(Member::is_new) {
                self.allowed += self.capacity();
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

    fn capacity(&self) -> u64 {
        self.members.iter().flatten().next().map_or(0, |member| member.lease.limits.capacity)
    }
}
