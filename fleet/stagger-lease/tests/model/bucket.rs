//! Explores the protocol: three processes and a store, in every order of faults that the limits allow.
//!
//! A single bucket without a fleet is the reference: it is refilled all the time and pays for every retry. It must not fall
//! below zero by more than the documented formula allows for the faults so far.

use stagger_kit::assert_found;
use stateright::{Model, Property};

use crate::account::Account;
use crate::bucket::{Bucket, Fault};
use crate::claim::{Claim, Limits, Reply, Report, SECOND, Timing, WRAP};
use crate::ledger::{Counted, Ledger};
use crate::process::Process;

const COST: u64 = 1_000_000;
const LIMITS: Limits = Limits { capacity: 6 * COST, refill: COST, initial: 6 * COST, cost: COST, reward: 0 };
const TIMING: Timing = Timing { period: 900_000, lease: 2_700_000, patience: 900_000 };
/// Processes report one after the other.
const TURN: u64 = TIMING.period / PROCESSES as u64;
const PROCESSES: usize = 3;
/// The store's clock differs from those of the processes.
const STORE_EPOCH: u64 = 1_000 * SECOND;
const JUMP: i64 = 20_000_000;

/// The limits of the exploration.
#[derive(Clone, Copy, Debug)]
struct Explored {
    fault: Fault,
    turns: u8,
    faults: u8,
    kinds: Kinds,
}

/// Which faults there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    All,
    /// Jumps of the store's clock, which end all leases at once, while processes only hold or spend early.
    Jumps,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    now: u64,
    turn: u8,
    faults: u8,
    jumped: i64,
    is_down: bool,
    was_emptied: bool,
    /// Reports that did not arrive.
    lost: u8,
    bucket: Bucket,
    members: [Member; PROCESSES],
    buffered: Option<(usize, Report, Claim)>,
    /// The single bucket.
    level: i64,
    /// How far it may be below zero.
    allowed: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Member {
    process: Process,
    account: Account,
    held: u64,
    spent: u64,
    earned: u64,
    /// What it was granted with the last reply that arrived.
    lease: u64,
    /// What was reported last, for processes that report differences.
    reported: u64,
    is_cut: bool,
    is_paused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// The process whose turn it is spends all, or nothing, before and after its report.
    Turn(Exchange, Spend),
    StoreDown,
    StoreUp,
    StoreEmptied,
    ClockJump(i64),
    Cut(usize),
    Heal(usize),
    Pause(usize),
    Resume(usize),
    /// The store handles a report for which nobody waits any more.
    Deliver,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    Complete,
    RequestLost,
    ReplyLost,
    Buffered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spend {
    Nothing,
    Before,
    After,
}

impl World {
    fn new(faults: u8) -> Self {
        let member = Member {
            process: Process::new(TIMING, PROCESSES as u64, 0),
            account: Account::new(LIMITS, 0),
            held: 0,
            lease: 0,
            spent: WRAP - 2 * COST,
            earned: WRAP - 2 * COST,
            reported: WRAP - 2 * COST,
            is_cut: false,
            is_paused: false,
        };
        let members = [(); PROCESSES].map(|()| member.clone());
        let bucket = Bucket::default();
        let level = LIMITS.initial as i64;
        Self {
            now: 0,
            turn: 0,
            faults,
            jumped: 0,
            is_down: false,
            was_emptied: false,
            lost: 0,
            bucket,
            members,
            buffered: None,
            level,
            allowed: 0,
        }
    }

    fn process(&self) -> usize {
        usize::from(self.turn) % PROCESSES
    }

    fn store_time(&self) -> u64 {
        (STORE_EPOCH + self.now).saturating_add_signed(self.jumped)
    }

    fn share(of: u64) -> i64 {
        (of / PROCESSES as u64) as i64
    }

    /// Lets a process use its turn.
    fn act(&mut self, exchange: Exchange, spend: Spend, fault: Fault) {
        let index = self.process();
        let (now, store_time, is_down) = (self.now, self.store_time(), self.is_down);
        let member = &mut self.members[index];
        if !member.is_paused {
            let ledger = Ledger::with(Counted { held: member.held, spent: member.spent, earned: member.earned });
            let before = ledger.spent();
            let spend_all = || while ledger.try_spend(COST) {};
            if spend == Spend::Before {
                spend_all();
            }
            // Each process wants the whole capacity.
            for _ in 0..4 {
                let _ = ledger.try_spend(u64::MAX);
            }
            if member.process.tick(now).is_some() && !is_down && !member.is_cut {
                // Requests or replies were lost in a row, as if it had been cut off.
                self.allowed += Self::share(LIMITS.capacity);
            }
            if member.process.is_local() {
                member.account.use_local_share(&ledger, member.process.processes(), now);
            }
            if !is_down && !member.is_cut && exchange != Exchange::RequestLost {
                let report = member.process.report(0, now);
                let mut claim = member.account.claim(&ledger, member.process.processes(), &TIMING, now);
                if fault == Fault::Differences {
                    claim.spent = claim.spent.wrapping_sub(member.reported) % WRAP;
                    member.reported = ledger.spent();
                }
                if exchange == Exchange::Buffered {
                    self.buffered = Some((index, report, claim));
                } else {
                    let reply = self.bucket.report_with(index as u64, &report, &claim, &TIMING, store_time, fault);
                    match reply {
                        _ if exchange == Exchange::ReplyLost => {}
                        Reply::Again => member.process.on_again(now),
                        Reply::Done { now: store, leases } => {
                            if let [Some(lease)] = leases[..] {
                                let _ = member.process.on_reply(store, lease.processes, now, now);
                                member.account.on_lease(&ledger, lease);
                                member.lease = lease.tokens;
                            }
                        }
                    }
                }
            } else if !is_down && exchange == Exchange::RequestLost && fault == Fault::Differences {
                member.reported = ledger.spent();
            }
            if spend == Spend::After {
                spend_all();
            }
            self.level -= ledger.spent().wrapping_sub(before) as i64;
            (member.held, member.spent, member.earned) = (ledger.held(), ledger.spent(), ledger.earned());
        }
        self.now += TURN;
        self.turn += 1;
        self.level = (self.level + (LIMITS.refill * TURN / SECOND) as i64).min(LIMITS.capacity as i64);
        let is_alone = |member: &&Member| member.is_cut || member.process.is_local();
        let cut = self.members.iter().filter(is_alone).filter(|_| !self.is_down).count() as i64;
        self.allowed += cut * Self::share(LIMITS.refill * TURN / SECOND);
    }

    /// Returns how far the single bucket may be below zero. A store that was emptied learns late what the processes hold whose
    /// reports are lost.
    fn allowed(&self) -> i64 {
        let late = if self.was_emptied { u64::from(self.lost) } else { 0 };
        self.allowed + (late * LIMITS.refill * TIMING.period / SECOND) as i64
    }

    /// Returns whether a process has a token in hand soon after all faults have ended.
    fn recovers(&self, fault: Fault) -> bool {
        let mut world = self.clone();
        world.is_down = false;
        world.buffered = None;
        for member in &mut world.members {
            (member.is_cut, member.is_paused) = (false, false);
        }
        // A debt of one capacity, the end of leases, and settling.
        let longest = SECOND * LIMITS.capacity / LIMITS.refill + TIMING.lease * 5 / 4 + 3 * TIMING.period;
        let until = world.now + longest;
        while world.now < until {
            if world.members.iter().any(|member| member.held >= COST) {
                return true;
            }
            world.act(Exchange::Complete, Spend::Nothing, fault);
        }
        false
    }
}

impl Model for Explored {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.faults)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.turn >= self.turns {
            return;
        }
        let member = &world.members[world.process()];
        if member.is_paused {
            actions.push(Action::Turn(Exchange::Complete, Spend::Nothing));
        } else {
            for spend in [Spend::Nothing, Spend::Before, Spend::After] {
                actions.push(Action::Turn(Exchange::Complete, spend));
                if self.kinds == Kinds::All && world.faults > 0 && !world.is_down && !member.is_cut {
                    for exchange in [Exchange::RequestLost, Exchange::ReplyLost, Exchange::Buffered] {
                        actions.push(Action::Turn(exchange, spend));
                    }
                }
            }
        }
        if world.buffered.is_some() && !world.is_down {
            actions.push(Action::Deliver);
        }
        if world.process() != 0 {
            return;
        }
        if world.is_down {
            actions.push(Action::StoreUp);
        }
        for (index, member) in world.members.iter().enumerate() {
            if member.is_cut {
                actions.push(Action::Heal(index));
            }
            if member.is_paused {
                actions.push(Action::Resume(index));
            }
        }
        if world.faults > 0 && self.kinds == Kinds::Jumps {
            actions.extend([Action::ClockJump(JUMP), Action::ClockJump(-JUMP)]);
        } else if world.faults > 0 {
            if !world.is_down {
                actions.push(Action::StoreDown);
            }
            actions.extend([Action::StoreEmptied, Action::ClockJump(JUMP), Action::ClockJump(-JUMP)]);
            // The first and the last of a round; the second is like the last.
            for index in [0, PROCESSES - 1] {
                if !world.members[index].is_cut && !world.members[index].is_paused {
                    actions.extend([Action::Cut(index), Action::Pause(index)]);
                }
            }
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        // Then the first report after the loss may be one that knows of no bucket.
        let is_new = world.members.iter().any(|member| member.process.is_new())
            || world.buffered.is_some_and(|(_, _, claim)| claim.epoch == 0);
        let capacity = LIMITS.capacity as i64;
        match action {
            Action::Turn(exchange, spend) => {
                world.faults -= u8::from(exchange != Exchange::Complete);
                world.lost += u8::from(matches!(exchange, Exchange::RequestLost | Exchange::Buffered));
                world.act(exchange, spend, self.fault);
            }
            Action::StoreUp => world.is_down = false,
            Action::StoreDown => {
                world.is_down = true;
                // It comes back for processes that have used their share of the initial tokens.
                world.allowed += if is_new { capacity } else { 0 };
            }
            Action::StoreEmptied => {
                world.bucket = Bucket::default();
                world.was_emptied = true;
                world.allowed += if is_new { capacity } else { 0 };
            }
            Action::ClockJump(by) => {
                world.jumped += by;
                world.allowed += if is_new { capacity } else { 0 };
            }
            Action::Cut(index) => {
                world.members[index].is_cut = true;
                // It may spend its lease, which returns to the others, or the share that it begins with if it never had one.
                let member = &world.members[index];
                let share = if member.process.is_new() { LIMITS.capacity / PROCESSES as u64 } else { 0 };
                world.allowed += member.lease.max(member.held).max(share) as i64;
            }
            Action::Heal(index) => world.members[index].is_cut = false,
            Action::Pause(index) => {
                world.members[index].is_paused = true;
                world.allowed += world.members[index].lease.max(world.members[index].held) as i64;
            }
            Action::Resume(index) => world.members[index].is_paused = false,
            Action::Deliver => {
                let (index, report, claim) = world.buffered.take()?;
                let now = world.store_time();
                let _ = world.bucket.report_with(index as u64, &report, &claim, &TIMING, now, self.fault);
            }
        }
        if !matches!(action, Action::Turn(..) | Action::StoreUp | Action::Heal(_) | Action::Resume(_) | Action::Deliver)
        {
            world.faults -= 1;
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("budget", |_, world: &World| world.level + world.allowed() >= 0),
            Property::always("never stuck", |explored: &Self, world: &World| world.recovers(explored.fault)),
        ]
    }
}

/// Explores, and returns the number of states.
fn explore(explored: Explored) -> Result<usize, String> {
    stagger_kit::explore(explored, |world| format!("level and allowance {:?}", (world.level, world.allowed())))
}

#[test]
fn the_budget_holds_and_no_process_is_stuck_after_one_fault() {
    let states = explore(Explored { fault: Fault::None, turns: 12, faults: 1, kinds: Kinds::All });
    assert!(states.unwrap_or_else(|found| panic!("{found}")) > 500_000);
}

#[test]
fn the_budget_holds_and_no_process_is_stuck_after_two_faults() {
    let states = explore(Explored { fault: Fault::None, turns: 8, faults: 2, kinds: Kinds::All });
    assert!(states.unwrap_or_else(|found| panic!("{found}")) > 100_000);
}

#[test]
#[ignore = "takes minutes and gigabytes: cargo nextest run -p stagger-lease --run-ignored only for_longer"]
fn the_budget_holds_and_no_process_is_stuck_for_longer() {
    for (turns, faults, kinds) in [(14, 1, Kinds::All), (9, 2, Kinds::All), (18, 1, Kinds::Jumps)] {
        let states =
            explore(Explored { fault: Fault::None, turns, faults, kinds }).unwrap_or_else(|found| panic!("{found}"));
        println!("{turns} turns, {faults} faults: {states} states");
    }
}

#[test]
fn reporting_differences_instead_of_counters_is_found() {
    assert_found(&explore(Explored { fault: Fault::Differences, turns: 9, faults: 1, kinds: Kinds::All }), "budget");
}

#[test]
fn granting_at_once_after_a_gap_is_found() {
    assert_found(&explore(Explored { fault: Fault::NoSettling, turns: 17, faults: 1, kinds: Kinds::Jumps }), "budget");
}

#[test]
fn forgetting_the_counters_of_a_process_with_its_lease_is_found() {
    assert_found(
        &explore(Explored { fault: Fault::ForgetsCounters, turns: 12, faults: 1, kinds: Kinds::Jumps }),
        "budget",
    );
}

#[test]
fn trusting_times_of_before_a_step_back_is_found() {
    assert_found(
        &explore(Explored { fault: Fault::TrustsOldTimes, turns: 12, faults: 2, kinds: Kinds::Jumps }),
        "never stuck",
    );
}
