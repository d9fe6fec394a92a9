//! Explores the protocol of a shared window: three processes and a store, in every order of calls, retries and faults
//! that the limits allow.
//!
//! The reference is the list of all calls and retries: in no interval of the length of the window may there be more
//! retries than the documented bound allows, and what the faults so far add to it.
//!
//! Mistakes that a store could make are planted in what the pool keeps, and must be found.

use stagger_kit::{World, assert_found, explore, walk};

use super::{Pool, State};
use crate::claim::{Report, SECOND};
use crate::ledger::{Counted, Ledger};
use crate::network::{Action, Exchange, Kinds, Network, PROCESSES, START, TIMING};
use crate::process::Process;
use crate::window::account::WindowAccount;
use crate::window::claim::{Counts, WindowClaim, WindowLease, WindowLimits};

/// Half a retry for each call, and two for all processes in a window, so that none has a part of its own.
const LIMITS: WindowLimits = WindowLimits { ttl: SECOND * 3 / 2, ratio: 500_000, min_per_second: 1 };
/// What the protocol calls p: a report and its jitter, and its way.
const P: u64 = TIMING.period * 5 / 4;
/// The slots of the store begin at other times.
const STORE_OFFSET: u64 = 70_000;
/// How many calls a process makes at once.
const CALLS: u64 = 4;

/// A mistake of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fault {
    None,
    /// A store that has lost its data grants at once, before all processes have reported.
    NoSettling,
    /// The store adds what a process has counted to what it had reported before, instead of replacing it.
    AddsUp,
    /// The store takes times of before for its own after its clock has stepped back.
    TrustsOldTimes,
}

/// A pool with a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Store {
    pool: Pool,
    fault: Fault,
    /// Until when the pool settles, for a store that trusts the times of before.
    settle: i64,
}

impl Store {
    fn report(&mut self, id: u64, report: &Report, claim: &WindowClaim, now: u64) -> Option<WindowLease> {
        let (pool, time) = (&mut self.pool, now as i64);
        let settled = time + P as i64;
        match (self.fault, &mut pool.state) {
            (Fault::NoSettling, None) => {
                let slot = time / LIMITS.slot_length() as i64;
                pool.state = Some(State { slot, counts: Counts::default(), at: time, settle: 0, outstanding: 0 });
            }
            (Fault::AddsUp, Some(_)) => {
                // There is nothing to take back.
                if let Some(record) = pool.records.get_mut(&id) {
                    record.counts = Counts::default();
                }
            }
            (Fault::TrustsOldTimes, Some(state)) => {
                if time - state.at > TIMING.lease as i64 {
                    self.settle = settled;
                }
                (state.at, state.settle) = (state.at.min(time), self.settle);
            }
            (Fault::TrustsOldTimes, None) => self.settle = settled,
            (Fault::None | Fault::NoSettling, _) | (Fault::AddsUp, None) => {}
        }
        pool.report(id, report, claim, &TIMING, now)
    }
}

/// All of it.
const ALL: &[Work] = &[Work::Nothing, Work::Calls, Work::EarlyRetries, Work::Retries];
/// Retries of the minimum alone, which come back when they are too old.
const MINIMUM: &[Work] = &[Work::Nothing, Work::EarlyRetries, Work::Retries];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Window {
    network: Network,
    /// What processes do in their turns.
    work: &'static [Work],
    store: Store,
    members: [Member; PROCESSES],
    buffered: Option<(usize, Report, WindowClaim)>,
    /// When there were calls and retries, and how many, as long as they count.
    calls: Vec<(u64, u64)>,
    retries: Vec<(u64, u64)>,
    /// The most retries above what calls and minimum allow, in millionths.
    above: i64,
    /// How many there may be by the faults so far, in millionths.
    allowed: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Member {
    process: Process,
    account: WindowAccount,
    counted: Counted,
    /// A request or a reply was lost since the last reply.
    has_lost: bool,
}

/// What a process does in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    Nothing,
    /// Makes calls, before its report.
    Calls,
    /// Makes all retries that it may, before its report: the store learns of them at once.
    EarlyRetries,
    /// Makes all retries that it may, after its report.
    Retries,
}

impl Member {
    /// What the process has in hand, or gets in hand when it is alone: in millionths of a retry.
    fn own_share(&self) -> i64 {
        let of_own_calls = self.counted.earned * LIMITS.ratio + LIMITS.minimum() / PROCESSES as u64;
        (self.counted.held * SECOND).max(of_own_calls) as i64
    }
}

impl Window {
    fn new(fault: Fault, faults: u8, work: &'static [Work]) -> Self {
        let member = Member {
            process: Process::new(TIMING, PROCESSES as u64, START),
            account: WindowAccount::new(LIMITS, START),
            counted: Counted { held: 0, spent: 0, earned: 0 },
            has_lost: false,
        };
        Self {
            network: Network::new(Kinds::All, faults, STORE_OFFSET),
            work,
            store: Store { pool: Pool::default(), fault, settle: 0 },
            members: [(); PROCESSES].map(|()| member.clone()),
            buffered: None,
            calls: Vec::new(),
            retries: Vec::new(),
            above: 0,
            allowed: 0,
        }
    }

    /// Lets the process whose turn it is work, and report.
    fn take_turn(&mut self, work: Work, exchange: Exchange) {
        let index = self.network.process();
        if !self.network.is_paused[index] {
            let ledger = Ledger::with(self.members[index].counted);
            if work == Work::Calls {
                ledger.earn(CALLS);
                self.calls.push((self.network.now, CALLS));
            }
            if work == Work::EarlyRetries {
                self.retry(&ledger);
            }
            // Each process wants more than there is.
            for _ in 0..8 {
                let _ = ledger.try_spend(u64::MAX);
            }
            self.report(index, &ledger, exchange);
            if work == Work::Retries {
                self.retry(&ledger);
            }
            self.members[index].counted =
                Counted { held: ledger.held(), spent: ledger.spent(), earned: ledger.earned() };
        }
        self.audit();
        self.network.end_turn();
    }

    /// Makes all retries that the process may make.
    fn retry(&mut self, ledger: &Ledger) {
        let made = core::iter::repeat_with(|| ledger.try_spend(1)).take_while(|granted| *granted).count();
        if made > 0 {
            self.retries.push((self.network.now, made as u64));
        }
    }

    fn report(&mut self, index: usize, ledger: &Ledger, exchange: Exchange) {
        let (now, store_time) = (self.network.now, self.network.store_time());
        let member = &mut self.members[index];
        if member.process.tick(now).is_some()
            && (!self.network.is_down || member.has_lost)
            && !self.network.is_cut[index]
        {
            // Messages were lost in a row, as if it had been cut off.
            self.allowed += member.own_share();
        }
        let processes = member.process.processes();
        if member.process.is_local() {
            member.account.use_local_share(ledger, processes, &TIMING, now);
        }
        member.has_lost |= exchange != Exchange::Complete;
        if !self.network.reaches_store(index, exchange) {
            return;
        }
        let report = member.process.report(0, now);
        let claim = member.account.claim(ledger, processes, &TIMING, now);
        if exchange == Exchange::Buffered {
            self.buffered = Some((index, report, claim));
        } else if report.contradicts(store_time) {
            member.process.on_again(now);
        } else {
            let lease = self.store.report(index as u64, &report, &claim, store_time);
            if let (Some(lease), false) = (lease, exchange == Exchange::ReplyLost) {
                member.has_lost = false;
                let _ = member.process.on_reply(store_time, lease.processes, now, now);
                member.account.on_lease(ledger, lease);
            }
        }
    }

    /// Compares the retries of the last window with the bound.
    fn audit(&mut self) {
        let now = self.network.now;
        self.retries.retain(|(at, _)| at + LIMITS.ttl > now);
        self.calls.retain(|(at, _)| at + LIMITS.ttl + P > now);
        // Later, calls become too old for retries that they have allowed.
        if self.retries.last().is_none_or(|(at, _)| *at < now) {
            return;
        }
        let sum = |counts: &[(u64, u64)]| counts.iter().map(|(_, count)| count).sum::<u64>();
        let allowed = sum(&self.calls) * LIMITS.ratio + LIMITS.minimum();
        self.above = self.above.max((sum(&self.retries) * SECOND) as i64 - allowed as i64);
    }

    /// Returns whether a process has a retry in hand soon after all faults have ended.
    fn recovers(&self) -> bool {
        let mut world = self.clone();
        world.network.recover();
        world.buffered = None;
        // All retries count no more, leases have ended, and the store has settled.
        let until = world.network.now + LIMITS.ttl * 11 / 10 + TIMING.lease * 5 / 4 + 3 * TIMING.period;
        while world.network.now < until {
            if world.members.iter().any(|member| member.counted.held > 0) {
                return true;
            }
            world.take_turn(Work::Nothing, Exchange::Complete);
        }
        false
    }
}

impl World for Window {
    type Action = Action<Work>;

    fn turns(&self) -> u8 {
        self.network.turns
    }

    fn actions(&self, actions: &mut Vec<Self::Action>) {
        self.network.actions(self.work, self.buffered.is_some(), actions);
    }

    fn act(&mut self, action: Self::Action) {
        self.network.act(&action);
        match action {
            Action::Turn(work, exchange) => self.take_turn(work, exchange),
            Action::StoreEmptied => self.store.pool = Pool::default(),
            // Its lease returns to the others, and it may spend it, or what its own calls allow.
            Action::Cut(index) | Action::Pause(index) => self.allowed += self.members[index].own_share(),
            Action::Deliver => {
                let Some((index, report, claim)) = self.buffered.take() else { return };
                let now = self.network.store_time();
                // It says nothing of what the process has done alone since.
                let member = &self.members[index];
                if member.process.is_local() {
                    self.allowed += member.own_share();
                }
                if !report.contradicts(now) {
                    let _ = self.store.report(index as u64, &report, &claim, now);
                }
            }
            // Starts are explored for token buckets.
            Action::Start(_)
            | Action::StoreDown
            | Action::StoreUp
            | Action::ClockJump(_)
            | Action::Heal(_)
            | Action::Resume(_) => {}
        }
    }

    fn broken(&self) -> Option<&'static str> {
        if self.above > self.allowed {
            Some("budget")
        } else if !self.recovers() {
            Some("never stuck")
        } else {
            None
        }
    }

    fn figures(&self) -> String {
        let Self { above, allowed, retries, calls, .. } = self;
        format!("{above} above, {allowed} allowed, retries {retries:?}, calls {calls:?}")
    }
}

fn assert_holds(turns: u8, faults: u8, work: &'static [Work], at_least: usize) {
    let states = explore(Window::new(Fault::None, faults, work), turns).unwrap_or_else(|found| panic!("{found}"));
    println!("{turns} turns, {faults} faults: {states} states");
    assert!(states > at_least, "{states}");
}

#[test]
fn the_bound_of_a_window_holds_and_no_process_is_stuck_after_one_fault() {
    assert_holds(6, 1, ALL, 50_000);
}

#[test]
fn the_bound_of_a_window_holds_while_calls_and_retries_become_too_old() {
    assert_holds(8, 0, ALL, 10_000);
    assert_holds(13, 0, MINIMUM, 1_000);
}

#[test]
fn the_bound_of_a_window_holds_and_no_process_is_stuck_after_two_faults() {
    assert_holds(4, 2, ALL, 40_000);
}

#[test]
fn the_bound_of_a_window_holds_on_long_walks() {
    let walked = walk(Window::new(Fault::None, 0, ALL), 60, 400_000, 1);
    assert!(walked.is_ok(), "{walked:?}");
}

#[test]
fn a_store_that_adds_up_what_processes_report_is_found() {
    assert_found(&explore(Window::new(Fault::AddsUp, 0, ALL), 8), "budget");
}

#[test]
fn a_store_that_grants_before_all_have_reported_is_found() {
    assert_found(&walk(Window::new(Fault::NoSettling, 1, ALL), 30, 1_000_000, 1), "budget");
}

#[test]
fn trusting_the_end_of_settling_of_before_a_step_back_is_found() {
    assert_found(&explore(Window::new(Fault::TrustsOldTimes, 1, ALL), 5), "never stuck");
}
