//! Explores the protocol of a token bucket: three processes and a store, in every order of faults that the limits
//! allow.
//!
//! A single bucket without a fleet is the reference: it is refilled all the time and pays for every retry. It must not
//! fall below zero by more than the documented formula allows for the faults so far.
//!
//! Mistakes that a store could make are planted in what the bucket keeps, and must be found.

use stagger_kit::{World, assert_found, explore, walk};

use super::{Bucket, settling};
use crate::account::Account;
use crate::claim::{Claim, Limits, Reply, Report, SECOND, WRAP};
use crate::ledger::{Counted, Ledger};
use crate::network::{Action, Exchange, Kinds, Network, PROCESSES, START, TIMING, TURN};
use crate::process::Process;

const COST: u64 = 1_000_000;
const LIMITS: Limits = Limits { capacity: 6 * COST, refill: COST, initial: 6 * COST, cost: COST, reward: 0 };

/// A mistake of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fault {
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

/// A bucket with a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Store {
    bucket: Bucket,
    fault: Fault,
    /// Until when the bucket settles, for a store that trusts the times of before.
    settle: i64,
}

impl Store {
    const fn is(&self, fault: Fault) -> bool {
        self.fault as u8 == fault as u8
    }

    fn report(&mut self, id: u64, report: &Report, claim: &Claim, now: u64) -> Reply {
        let bucket = &mut self.bucket;
        let is_old = bucket.records.get(&id).is_some_and(|record| record.number >= report.number);
        let mut report = *report;
        if let Some(state) = &mut bucket.state
            && !is_old
            && !report.contradicts(now)
        {
            let now = now as i64;
            let gap = now - state.at - TIMING.lease as i64;
            match self.fault {
                Fault::None => {}
                Fault::Differences => {
                    // What arrives is the difference to zero.
                    if let Some(record) = bucket.records.get_mut(&id) {
                        (record.spent, record.earned) = (0, 0);
                    }
                }
                Fault::NoSettling => {
                    // As if the last report had been within the length of a lease, for both clocks.
                    state.at += gap.max(0);
                    if report.resync {
                        report.expected = report.expected.map(|expected| expected + gap.max(0) as u64);
                    }
                }
                Fault::ForgetsCounters => {
                    let holders = &mut bucket.holders;
                    let returned = holders.end_leases(&mut bucket.records, |record| record.lease, &TIMING, now);
                    state.outstanding -= returned;
                    state.reserve += returned;
                    bucket.records.retain(|id, _| holders.has_lease(*id));
                }
                Fault::TrustsOldTimes => {
                    if gap > 0 {
                        self.settle = now + settling(&TIMING);
                    }
                    state.settle = self.settle;
                }
            }
        }
        let reply = bucket.report(id, &report, claim, &TIMING, now);
        if self.settle == 0
            && let Some(state) = &bucket.state
        {
            self.settle = state.settle;
        }
        reply
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Tokens {
    network: Network,
    was_emptied: bool,
    /// Reports that did not arrive.
    lost: u8,
    store: Store,
    members: [Member; PROCESSES],
    /// How many processes there were.
    started: u64,
    buffered: Option<(u64, Report, Claim)>,
    /// The single bucket.
    level: i64,
    /// How far it may be below zero.
    allowed: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Member {
    id: u64,
    process: Process,
    account: Account,
    counted: Counted,
    /// A request or a reply was lost since the last reply.
    has_lost: bool,
    /// What was reported last, for processes that report differences.
    reported: u64,
}

/// When a process spends all that it holds in its turn: before its report or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spend {
    Nothing,
    Before,
    After,
}

impl Member {
    fn new(id: u64, now: u64) -> Self {
        let begun = WRAP - 2 * COST;
        Self {
            id,
            process: Process::new(TIMING, PROCESSES as u64, now),
            // It may ask for all that there is at once, which is worse than the beginning.
            account: Account::new(LIMITS, now - TIMING.period),
            counted: Counted { held: 0, spent: begun, earned: begun },
            has_lost: false,
            reported: begun,
        }
    }
}

impl Tokens {
    fn new(fault: Fault, faults: u8, kinds: Kinds) -> Self {
        Self {
            network: Network::new(kinds, faults, 0),
            was_emptied: false,
            lost: 0,
            store: Store { bucket: Bucket::default(), fault, settle: 0 },
            members: core::array::from_fn(|index| Member::new(index as u64, START)),
            started: PROCESSES as u64,
            buffered: None,
            level: LIMITS.initial as i64,
            allowed: 0,
        }
    }

    fn share(of: u64) -> i64 {
        (of / PROCESSES as u64) as i64
    }

    /// Lets the process whose turn it is spend, and report.
    fn take_turn(&mut self, spend: Spend, exchange: Exchange) {
        let index = self.network.process();
        if !self.network.is_paused[index] {
            let ledger = Ledger::with(self.members[index].counted);
            let before = ledger.spent();
            let spend_all = || while ledger.try_spend(COST) {};
            if spend == Spend::Before {
                spend_all();
            }
            // Each process wants the whole capacity.
            for _ in 0..4 {
                let _ = ledger.try_spend(u64::MAX);
            }
            self.report(index, &ledger, exchange);
            if spend == Spend::After {
                spend_all();
            }
            self.level -= ledger.spent().wrapping_sub(before) as i64;
            self.members[index].counted =
                Counted { held: ledger.held(), spent: ledger.spent(), earned: ledger.earned() };
        }
        self.network.end_turn();
        let refilled = LIMITS.refill * TURN / SECOND;
        self.level = (self.level + refilled as i64).min(LIMITS.capacity as i64);
        for (index, member) in self.members.iter().enumerate() {
            // It refills its share itself.
            if !self.network.is_down && (self.network.is_cut[index] || member.process.is_local()) {
                self.allowed += Self::share(refilled);
            }
        }
    }

    fn report(&mut self, index: usize, ledger: &Ledger, exchange: Exchange) {
        let now = self.network.now;
        let member = &mut self.members[index];
        if member.process.tick(now).is_some() && member.has_lost {
            // Messages were lost in a row, as if it had been cut off.
            self.allowed += Self::share(LIMITS.capacity);
        }
        if member.process.is_local() {
            member.account.use_local_share(ledger, member.process.processes(), &TIMING, now);
        }
        member.has_lost |= exchange != Exchange::Complete;
        if !self.network.reaches_store(index, exchange) {
            if !self.network.is_down && exchange == Exchange::RequestLost {
                member.reported = ledger.spent();
            }
            return;
        }
        let report = member.process.report(0, now);
        let mut claim = member.account.claim(ledger, member.process.processes(), &TIMING, now);
        if self.store.is(Fault::Differences) {
            claim.spent = claim.spent.wrapping_sub(member.reported) % WRAP;
            member.reported = ledger.spent();
        }
        if exchange == Exchange::Buffered {
            self.buffered = Some((member.id, report, claim));
            return;
        }
        let id = member.id;
        let reply = self.report_to_store(id, &report, &claim);
        let member = &mut self.members[index];
        match reply {
            _ if exchange == Exchange::ReplyLost => {}
            Reply::Again => member.process.on_again(now),
            Reply::Done { now: store, leases } => {
                if let [Some(lease)] = leases[..] {
                    let _ = member.process.on_reply(store, lease.processes, now, now);
                    member.account.on_lease(ledger, lease);
                    member.has_lost = false;
                }
            }
        }
    }

    /// Hands a report to the store. One without data begins with the initial tokens for a process that has begun just
    /// now: it does not know that others have spent those, or refilled their own shares.
    fn report_to_store(&mut self, id: u64, report: &Report, claim: &Claim) -> Reply {
        let is_late = self.was_emptied || self.members.iter().any(|member| member.process.is_local());
        if is_late && self.store.bucket.state.is_none() && claim.epoch == 0 {
            self.allowed += LIMITS.initial as i64;
        }
        self.store.report(id, report, claim, self.network.store_time())
    }

    /// Returns how far the single bucket may be below zero. A store that was emptied learns late what the processes
    /// hold whose reports are lost.
    fn allowed(&self) -> i64 {
        let late = if self.was_emptied { u64::from(self.lost) } else { 0 };
        self.allowed + (late * LIMITS.refill * TIMING.period / SECOND) as i64
    }

    /// Returns whether a process has a token in hand soon after all faults have ended.
    fn recovers(&self) -> bool {
        let mut world = self.clone();
        world.network.recover();
        world.buffered = None;
        // A debt of one capacity, the end of leases, and settling.
        let longest = SECOND * LIMITS.capacity / LIMITS.refill + TIMING.lease * 5 / 4 + 3 * TIMING.period;
        let until = world.network.now + longest;
        while world.network.now < until {
            if world.members.iter().any(|member| member.counted.held >= COST) {
                return true;
            }
            world.take_turn(Spend::Nothing, Exchange::Complete);
        }
        false
    }
}

impl World for Tokens {
    type Action = Action<Spend>;

    fn turns(&self) -> u8 {
        self.network.turns
    }

    fn actions(&self, actions: &mut Vec<Self::Action>) {
        let work = [Spend::Nothing, Spend::Before, Spend::After];
        self.network.actions(&work, self.buffered.is_some(), actions);
    }

    fn act(&mut self, action: Self::Action) {
        self.network.act(&action);
        match action {
            Action::Turn(spend, exchange) => {
                self.lost += u8::from(matches!(exchange, Exchange::RequestLost | Exchange::Buffered));
                self.take_turn(spend, exchange);
            }
            Action::StoreEmptied => {
                self.store.bucket = Bucket::default();
                self.store.settle = 0;
                self.was_emptied = true;
            }
            Action::Deliver => {
                if let Some((id, report, claim)) = self.buffered.take() {
                    let _ = self.report_to_store(id, &report, &claim);
                }
            }
            Action::Start(index) => {
                self.members[index] = Member::new(self.started, self.network.now);
                self.started += 1;
            }
            // Its lease ends for the others, who have the room for it.
            Action::Cut(_) => self.allowed += Self::share(LIMITS.capacity),
            Action::Pause(index) => self.allowed += self.members[index].counted.held as i64,
            // Those were cut off, if others were not, who have reported meanwhile.
            Action::StoreDown => {
                let local = self.members.iter().filter(|member| member.process.is_local()).count();
                if local < PROCESSES {
                    self.allowed += local as i64 * Self::share(LIMITS.refilled(TIMING.lease));
                }
            }
            Action::StoreUp | Action::ClockJump(_) | Action::Heal(_) | Action::Resume(_) => {}
        }
    }

    fn broken(&self) -> Option<&'static str> {
        if self.level + self.allowed() < 0 {
            Some("budget")
        } else if !self.recovers() {
            Some("never stuck")
        } else {
            None
        }
    }

    fn figures(&self) -> String {
        format!("level and allowance {:?}", (self.level, self.allowed()))
    }
}

fn assert_holds(turns: u8, faults: u8, kinds: Kinds, at_least: usize) {
    let states = explore(Tokens::new(Fault::None, faults, kinds), turns).unwrap_or_else(|found| panic!("{found}"));
    println!("{turns} turns, {faults} faults: {states} states");
    assert!(states > at_least, "{states}");
}

#[test]
fn the_budget_holds_and_no_process_is_stuck_after_one_fault() {
    assert_holds(15, 1, Kinds::All, 300_000);
}

#[test]
fn the_budget_holds_and_no_process_is_stuck_after_two_faults() {
    assert_holds(8, 2, Kinds::All, 100_000);
}

#[test]
fn the_budget_holds_however_often_processes_start_and_the_store_is_lost() {
    assert_holds(13, 1, Kinds::Starts, 400_000);
    assert_holds(10, 2, Kinds::Starts, 500_000);
}

#[test]
fn the_budget_holds_on_long_walks() {
    for (kinds, faults) in [(Kinds::Starts, 4), (Kinds::All, 1), (Kinds::All, 3), (Kinds::Jumps, 3)] {
        for seed in 0..4 {
            let walked = walk(Tokens::new(Fault::None, faults, kinds), 60, 40_000, seed);
            assert!(walked.is_ok(), "{kinds:?}, seed {seed}: {walked:?}");
        }
    }
}

#[test]
fn reporting_differences_instead_of_counters_is_found() {
    assert_found(&explore(Tokens::new(Fault::Differences, 1, Kinds::All), 9), "budget");
}

#[test]
fn granting_at_once_after_a_gap_is_found() {
    assert_found(&walk(Tokens::new(Fault::NoSettling, 2, Kinds::All), 60, 1_000_000, 1), "budget");
}

#[test]
fn forgetting_the_counters_of_a_process_with_its_lease_is_found() {
    assert_found(&explore(Tokens::new(Fault::ForgetsCounters, 1, Kinds::Jumps), 12), "budget");
}

#[test]
fn trusting_times_of_before_a_step_back_is_found() {
    assert_found(&explore(Tokens::new(Fault::TrustsOldTimes, 2, Kinds::Jumps), 12), "never stuck");
}
