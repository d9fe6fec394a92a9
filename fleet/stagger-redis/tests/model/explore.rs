//! Explores the store's side of a quiet period: three processes, in every order of calls, lost messages and deaths that
//! the limits allow.

use stagger_kit::{World, assert_found, explore};
use stagger_lease::claim::Timing;

use super::quiet::{Fault, Processes, StoredPause};
use crate::guards::pause::Calls;
use crate::guards::pause::{Cause, Pause};

const TIMING: Timing = Timing { period: 900_000, lease: 2_700_000, patience: 900_000 };
const PROCESSES: usize = 3;
/// Processes report one after the other.
const TURN: u64 = TIMING.period / PROCESSES as u64;
const LONGEST: u64 = 60_000_000;
/// How long the server refuses calls, from the first one on.
const REFUSES: u64 = 3_000_000;
/// The store's clock differs from those of the processes.
const STORE_EPOCH: u64 = 1_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PausedFleet {
    fault: Fault,
    now: u64,
    turn: u8,
    faults: u8,
    used: u8,
    was_emptied: bool,
    stored: StoredPause,
    processes: Processes,
    members: [Member; PROCESSES],
    /// Calls that began after the pause, and before the answer to one of them.
    probes: u8,
    is_answered: bool,
    /// Calls that began during the pause, by processes that knew of it.
    disobeyed: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Member {
    /// What its `Pause` knows.
    pause: ([u64; 4], [bool; 2]),
    /// Until when the local quiet period holds calls.
    held_until: u64,
    calls: Held,
    /// When the call began that is under way.
    sent: Option<u64>,
    is_dead: bool,
}

/// What the local quiet period does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Held {
    Open,
    Quiet,
    Probing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// The process whose turn it is begins a call before its report or after it.
    Turn(Exchange, Begins),
    /// It dies.
    Die,
    /// The store loses its data.
    Emptied,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    Complete,
    RequestLost,
    ReplyLost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    Before,
    After,
}

impl PausedFleet {
    fn new(fault: Fault, faults: u8) -> Self {
        let pause = Pause::default().values();
        let member = Member { pause, held_until: 0, calls: Held::Open, sent: None, is_dead: false };
        Self {
            fault,
            now: 0,
            turn: 0,
            faults,
            used: 0,
            was_emptied: false,
            stored: StoredPause::default(),
            processes: Processes::default(),
            members: [(); PROCESSES].map(|()| member.clone()),
            probes: 0,
            is_answered: false,
            disobeyed: 0,
        }
    }

    fn process(&self) -> usize {
        usize::from(self.turn) % PROCESSES
    }

    /// Lets the process whose turn it is act.
    fn take_turn(&mut self, exchange: Exchange, begins: Begins) {
        let index = self.process();
        if !self.members[index].is_dead {
            self.hear(index);
            if begins == Begins::Before {
                self.begin(index);
            }
            if exchange != Exchange::RequestLost {
                self.report(index, exchange);
            }
            if begins == Begins::After {
                self.begin(index);
            }
        }
        self.now += TURN;
        self.turn = self.turn.wrapping_add(1);
    }

    /// Takes the answer to the call that began in an earlier turn.
    fn hear(&mut self, index: usize) {
        let (now, member) = (self.now, &mut self.members[index]);
        let Some(sent) = member.sent.take() else { return };
        if sent < REFUSES {
            let pause = Pause::of(member.pause);
            let _ = pause.wait_until(now + (REFUSES - sent), Cause::Told);
            member.pause = pause.values();
            (member.calls, member.held_until) = (Held::Quiet, member.held_until.max(now + (REFUSES - sent)));
        } else {
            self.is_answered = true;
            if member.calls == Held::Probing {
                member.calls = Held::Open;
            }
        }
    }

    /// Begins a call if the quiet period lets it.
    fn begin(&mut self, index: usize) {
        let (now, member) = (self.now, &mut self.members[index]);
        let pause = Pause::of(member.pause);
        if let Some(hold) = pause.to_apply() {
            if hold > now {
                (member.calls, member.held_until) = (Held::Quiet, member.held_until.max(hold));
            }
            pause.applied(hold);
        }
        let may = match member.calls {
            Held::Open => true,
            Held::Quiet => now >= member.held_until,
            Held::Probing => false,
        };
        if may {
            let is_told = pause.is_known();
            if member.calls == Held::Quiet {
                member.calls = Held::Probing;
            }
            member.sent = Some(now);
            if now >= REFUSES && !self.is_answered {
                self.probes += 1;
            }
            self.disobeyed += u8::from(now < REFUSES && is_told);
        } else {
            pause.want();
        }
        member.pause = pause.values();
    }

    fn report(&mut self, index: usize, exchange: Exchange) {
        let (now, store) = (self.now, (STORE_EPOCH + self.now) as i64);
        let member = &mut self.members[index];
        let calls = match member.calls {
            Held::Open => Calls::Starting,
            Held::Quiet => Calls::Held,
            Held::Probing => Calls::Probing,
        };
        let pause = Pause::of(member.pause);
        // Calls wait all the time.
        let claim = pause.claim(calls, member.calls == Held::Quiet, LONGEST, now);
        let count = self.processes.count(index as u64, false, &TIMING, store);
        let reply = self.stored.report(index as u64, &claim, (count, false), &TIMING, store, self.fault);
        if exchange == Exchange::Complete {
            let _ = pause.on_reply(reply, LONGEST, TIMING.period, now);
        }
        member.pause = pause.values();
    }

    /// Returns how many probes there may be. A process whose report is lost near the end does not hear that another has
    /// the probe. If the store loses its data near the end, each process that was told to wait sends one.
    fn most_probes(&self) -> u8 {
        if self.was_emptied { PROCESSES as u8 } else { 1 + self.used }
    }

    /// Returns whether the calls of all processes that live start again after all faults have ended: at the latest when
    /// the probe of a dead process has been replaced.
    fn recovers(&self) -> bool {
        let mut world = self.clone();
        let until = world.now.max(REFUSES) + 30_000_000 + 8 * TIMING.period;
        while world.now < until {
            if world.members.iter().all(|member| member.is_dead || member.calls == Held::Open) && world.now > REFUSES {
                return true;
            }
            world.take_turn(Exchange::Complete, Begins::After);
        }
        false
    }
}

impl World for PausedFleet {
    type Action = Action;

    fn turns(&self) -> u8 {
        self.turn
    }

    fn actions(&self, actions: &mut Vec<Action>) {
        let may_fail = self.faults > 0 && !self.members[self.process()].is_dead;
        for begins in [Begins::Before, Begins::After] {
            actions.push(Action::Turn(Exchange::Complete, begins));
            if may_fail {
                actions.push(Action::Turn(Exchange::RequestLost, begins));
                actions.push(Action::Turn(Exchange::ReplyLost, begins));
            }
        }
        if may_fail {
            actions.extend([Action::Die, Action::Emptied]);
        }
    }

    fn act(&mut self, action: Action) {
        if !matches!(action, Action::Turn(Exchange::Complete, _)) {
            self.faults -= 1;
            self.used += 1;
        }
        match action {
            Action::Turn(exchange, begins) => self.take_turn(exchange, begins),
            Action::Die => {
                let index = self.process();
                self.members[index].is_dead = true;
            }
            Action::Emptied => {
                self.stored = StoredPause::default();
                self.was_emptied = true;
            }
        }
    }

    fn broken(&self) -> Option<&'static str> {
        if self.probes > self.most_probes() {
            Some("one probe")
        } else if self.disobeyed > 0 {
            Some("the pause holds")
        } else if !self.recovers() {
            Some("never stuck")
        } else {
            None
        }
    }

    fn figures(&self) -> String {
        format!("{} probes", self.probes)
    }
}

#[test]
fn one_probe_ends_a_pause_and_no_process_is_stuck_after_a_fault() {
    for (turns, faults, least) in [(24, 1, 2_500), (18, 2, 15_000)] {
        let states = explore(PausedFleet::new(Fault::None, faults), turns).unwrap_or_else(|found| panic!("{found}"));
        assert!(states >= least, "{states}");
    }
}

#[test]
fn a_probe_of_each_process_is_found() {
    assert_found(&explore(PausedFleet::new(Fault::EveryoneProbes, 0), 17), "one probe");
}

#[test]
fn a_probe_that_is_never_replaced_is_found() {
    assert_found(&explore(PausedFleet::new(Fault::KeepsProbe, 1), 17), "never stuck");
}
