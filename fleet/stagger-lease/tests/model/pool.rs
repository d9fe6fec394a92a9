//! Explores the protocol of a shared window: three processes and a store, in every order of calls, retries and faults that the limits
//! allow.
//!
//! The reference is the list of all calls and retries: in no interval of the length of the window may there be more retries than the
//! documented bound allows, and what the faults so far add to it.

use stagger_kit::assert_found;
use stateright::{Model, Property};

use super::{Fault, Pool};
use crate::claim::{Report, SECOND, Timing};
use crate::ledger::{Counted, Ledger};
use crate::process::Process;
use crate::window::account::WindowAccount;
use crate::window::claim::{WindowClaim, WindowLimits};

/// Half a retry for each call, and two for all processes in a window, so that none has a part of its own.
const LIMITS: WindowLimits = WindowLimits { ttl: SECOND * 3 / 2, ratio: 500_000, min_per_second: 1 };
const TIMING: Timing = Timing { period: 900_000, lease: 2_700_000, patience: 900_000 };
/// Processes report one after the other.
const TURN: u64 = TIMING.period / PROCESSES as u64;
const PROCESSES: usize = 3;
/// What the protocol calls p: a report and its jitter, and its way.
const P: u64 = TIMING.period * 5 / 4;
/// The store's clock differs from those of the processes, and its slots begin at other times.
const STORE_EPOCH: u64 = 1_000 * SECOND + 70_000;
const JUMP: i64 = 20_000_000;
/// How many calls a process makes at once.
const CALLS: u64 = 4;

/// The limits of the exploration.
#[derive(Clone, Copy, Debug)]
struct Explored {
    fault: Fault,
    turns: u8,
    faults: u8,
    /// What processes do in their turns.
    work: &'static [Work],
}

/// All of it.
const ALL: &[Work] = &[Work::Nothing, Work::Calls, Work::EarlyRetries, Work::Retries];
/// Retries of the minimum alone, which come back when they are too old.
const MINIMUM: &[Work] = &[Work::Nothing, Work::EarlyRetries, Work::Retries];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    now: u64,
    turn: u8,
    faults: u8,
    jumped: i64,
    is_down: bool,
    pool: Pool,
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
    is_cut: bool,
    is_paused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// The process whose turn it is works, and reports.
    Turn(Work, Exchange),
    StoreDown,
    StoreUp,
    StoreEmptied,
    ClockJump(i64),
    Cut(usize),
    Heal(usize),
    Pause(usize),
    Resume(usize),
    /// The store handles a report whose process no longer waits.
    Deliver,
}

/// What a process does in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Nothing,
    /// Makes calls, before its report.
    Calls,
    /// Makes all retries that it may, before its report: the store learns of them at once.
    EarlyRetries,
    /// Makes all retries that it may, after its report.
    Retries,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    Complete,
    RequestLost,
    ReplyLost,
    Buffered,
}

impl Member {
    /// What the process has in hand, or gets in hand when it is alone: in millionths of a retry.
    fn own_share(&self) -> i64 {
        let of_own_calls = self.counted.earned * LIMITS.ratio + LIMITS.minimum() / PROCESSES as u64;
        (self.counted.held * SECOND).max(of_own_calls) as i64
    }
}

impl World {
    fn new(faults: u8) -> Self {
        let member = Member {
            process: Process::new(TIMING, PROCESSES as u64, 0),
            account: WindowAccount::new(LIMITS, 0),
            counted: Counted { held: 0, spent: 0, earned: 0 },
            has_lost: false,
            is_cut: false,
            is_paused: false,
        };
        Self {
            now: 0,
            turn: 0,
            faults,
            jumped: 0,
            is_down: false,
            pool: Pool::default(),
            members: [(); PROCESSES].map(|()| member.clone()),
            buffered: None,
            calls: Vec::new(),
            retries: Vec::new(),
            above: 0,
            allowed: 0,
        }
    }

    fn process(&self) -> usize {
        usize::from(self.turn) % PROCESSES
    }

    fn store_time(&self) -> u64 {
        (STORE_EPOCH + self.now).saturating_add_signed(self.jumped)
    }

    /// Lets a process use its turn.
    fn act(&mut self, work: Work, exchange: Exchange, fault: Fault) {
        let index = self.process();
        let (now, store, is_down) = (self.now, self.store_time(), self.is_down);
        let member = &mut self.members[index];
        if !member.is_paused {
            let ledger = Ledger::with(member.counted);
            if work == Work::Calls {
                ledger.earn(CALLS);
                self.calls.push((now, CALLS));
            }
            let mut retry = |ledger: &Ledger| {
                let made = core::iter::repeat_with(|| ledger.try_spend(1)).take_while(|granted| *granted).count();
                if made > 0 {
                    self.retries.push((now, made as u64));
                }
            };
            if work == Work::EarlyRetries {
                retry(&ledger);
            }
            // Each process wants more than there is.
            for _ in 0..8 {
                let _ = ledger.try_spend(u64::MAX);
            }
            if member.process.tick(now).is_some() && (!is_down || member.has_lost) && !member.is_cut {
                // Messages were lost in a row, as if it had been cut off.
                self.allowed += member.own_share();
            }
            let processes = member.process.processes();
            if member.process.is_local() {
                member.account.use_local_share(&ledger, processes, &TIMING, now);
            }
            member.has_lost |= exchange != Exchange::Complete;
            if !is_down && !member.is_cut && exchange != Exchange::RequestLost {
                let report = member.process.report(0, now);
                let claim = member.account.claim(&ledger, processes, &TIMING, now);
                if exchange == Exchange::Buffered {
                    self.buffered = Some((index, report, claim));
                } else if report.contradicts(store) {
                    member.process.on_again(now);
                } else {
                    let lease = self.pool.report_with(index as u64, &report, &claim, &TIMING, store, fault);
                    if let (Some(lease), false) = (lease, exchange == Exchange::ReplyLost) {
                        member.has_lost = false;
                        let _ = member.process.on_reply(store, lease.processes, now, now);
                        member.account.on_lease(&ledger, lease);
                    }
                }
            }
            if work == Work::Retries {
                retry(&ledger);
            }
            member.counted = Counted { held: ledger.held(), spent: ledger.spent(), earned: ledger.earned() };
        }
        self.audit();
        self.now += TURN;
        self.turn += 1;
    }

    /// Compares the retries of the last window with the bound.
    fn audit(&mut self) {
        let now = self.now;
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
    fn recovers(&self, fault: Fault) -> bool {
        let mut world = self.clone();
        world.is_down = false;
        world.buffered = None;
        for member in &mut world.members {
            (member.is_cut, member.is_paused) = (false, false);
        }
        // All retries count no more, leases have ended, and the store has settled.
        let until = world.now + LIMITS.ttl * 11 / 10 + TIMING.lease * 5 / 4 + 3 * TIMING.period;
        while world.now < until {
            if world.members.iter().any(|member| member.counted.held > 0) {
                return true;
            }
            world.act(Work::Nothing, Exchange::Complete, fault);
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
            actions.push(Action::Turn(Work::Nothing, Exchange::Complete));
        } else {
            for &work in self.work {
                actions.push(Action::Turn(work, Exchange::Complete));
                if world.faults > 0 && !world.is_down && !member.is_cut {
                    for exchange in [Exchange::RequestLost, Exchange::ReplyLost, Exchange::Buffered] {
                        actions.push(Action::Turn(work, exchange));
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
        if world.faults > 0 {
            if !world.is_down {
                actions.push(Action::StoreDown);
            }
            actions.extend([Action::StoreEmptied, Action::ClockJump(JUMP), Action::ClockJump(-JUMP)]);
            for index in [0, PROCESSES - 1] {
                if !world.members[index].is_cut && !world.members[index].is_paused {
                    actions.extend([Action::Cut(index), Action::Pause(index)]);
                }
            }
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        match action {
            Action::Turn(work, exchange) => {
                world.faults -= u8::from(exchange != Exchange::Complete);
                world.act(work, exchange, self.fault);
            }
            Action::StoreUp => world.is_down = false,
            Action::StoreDown => world.is_down = true,
            Action::StoreEmptied => world.pool = Pool::default(),
            Action::ClockJump(by) => world.jumped += by,
            // Its lease returns to the others, and it may spend it, or what its own calls allow.
            Action::Cut(index) => {
                world.allowed += world.members[index].own_share();
                world.members[index].is_cut = true;
            }
            Action::Pause(index) => {
                world.allowed += world.members[index].own_share();
                world.members[index].is_paused = true;
            }
            Action::Heal(index) => world.members[index].is_cut = false,
            Action::Resume(index) => world.members[index].is_paused = false,
            Action::Deliver => {
                let (index, report, claim) = world.buffered.take()?;
                let now = world.store_time();
                // It says nothing of what the process has done alone since.
                let member = &world.members[index];
                world.allowed += if member.process.is_local() { member.own_share() } else { 0 };
                if !report.contradicts(now) {
                    let _ = world.pool.report_with(index as u64, &report, &claim, &TIMING, now, self.fault);
                }
            }
        }
        let is_fault = matches!(
            action,
            Action::StoreDown | Action::StoreEmptied | Action::ClockJump(_) | Action::Cut(_) | Action::Pause(_)
        );
        world.faults -= u8::from(is_fault);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("budget", |_, world: &World| world.above <= world.allowed),
            Property::always("never stuck", |explored: &Self, world: &World| world.recovers(explored.fault)),
        ]
    }
}

/// Explores, and returns the number of states.
fn explore(explored: Explored) -> Result<usize, String> {
    stagger_kit::explore(explored, |world| {
        format!(
            "{} above, {} allowed, retries {:?}, calls {:?}",
            world.above, world.allowed, world.retries, world.calls
        )
    })
}

fn assert_holds(turns: u8, faults: u8, work: &'static [Work], at_least: usize) {
    let states =
        explore(Explored { fault: Fault::None, turns, faults, work }).unwrap_or_else(|found| panic!("{found}"));
    println!("{turns} turns, {faults} faults: {states} states");
    assert!(states > at_least, "{states}");
}

#[test]
fn the_bound_of_a_window_holds_and_no_process_is_stuck_after_one_fault() {
    assert_holds(6, 1, ALL, 50_000);
}

#[test]
fn the_bound_of_a_window_holds_while_calls_and_retries_become_too_old() {
    assert_holds(8, 0, ALL, 20_000);
    assert_holds(13, 0, MINIMUM, 1_000);
}

#[test]
fn the_bound_of_a_window_holds_and_no_process_is_stuck_after_two_faults() {
    assert_holds(4, 2, ALL, 40_000);
}

#[test]
#[ignore = "takes a minute and gigabytes: cargo nextest run -p stagger-lease --run-ignored only of_a_window"]
fn the_bound_of_a_window_holds_for_longer() {
    for (turns, faults) in [(8, 1), (11, 0), (6, 2)] {
        assert_holds(turns, faults, ALL, 100_000);
    }
}

#[test]
fn a_store_that_adds_up_what_processes_report_is_found() {
    assert_found(&explore(Explored { fault: Fault::AddsUp, turns: 8, faults: 0, work: ALL }), "budget");
}

#[test]
fn a_store_that_grants_before_all_have_reported_is_found() {
    assert_found(&explore(Explored { fault: Fault::NoSettling, turns: 6, faults: 1, work: ALL }), "budget");
}

#[test]
fn trusting_the_end_of_settling_of_before_a_step_back_is_found() {
    assert_found(&explore(Explored { fault: Fault::TrustsOldTimes, turns: 5, faults: 1, work: ALL }), "never stuck");
}
