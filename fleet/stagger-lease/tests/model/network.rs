//! Processes that take turns to report, the store between them, and what may fail: the part that both explorations
//! share.

use crate::claim::{SECOND, Timing};

pub(crate) const PROCESSES: usize = 3;
pub(crate) const TIMING: Timing = Timing { period: 900_000, lease: 2_700_000, patience: 900_000 };
/// Processes report one after the other.
pub(crate) const TURN: u64 = TIMING.period / PROCESSES as u64;
/// When the processes begin.
pub(crate) const START: u64 = TIMING.period;
const JUMP: i64 = 20_000_000;

/// Which faults there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kinds {
    All,
    /// Jumps of the store's clock, which end all leases at once, while processes only hold or spend early.
    Jumps,
    /// The store is lost and returns, with or without its data, and processes are killed and start as often as they
    /// like: a start is no fault.
    Starts,
}

/// What becomes of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    Complete,
    RequestLost,
    ReplyLost,
    /// The store handles it later, when nobody waits for the reply any more.
    Buffered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action<W> {
    /// The process whose turn it is works, and reports.
    Turn(W, Exchange),
    StoreDown,
    StoreUp,
    StoreEmptied,
    ClockJump(i64),
    Cut(usize),
    Heal(usize),
    Pause(usize),
    Resume(usize),
    /// A process is killed, and another one starts in its place.
    Start(usize),
    /// The store handles the report that was buffered.
    Deliver,
}

/// The clocks, and which parts of the network do not work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Network {
    kinds: Kinds,
    pub(crate) now: u64,
    pub(crate) turns: u8,
    /// How many faults may still happen.
    faults: u8,
    /// What the store's clock is ahead: it differs from those of the processes.
    ahead: u64,
    pub(crate) is_down: bool,
    pub(crate) is_cut: [bool; PROCESSES],
    pub(crate) is_paused: [bool; PROCESSES],
    /// The turn before which each process was started.
    begun: [u8; PROCESSES],
}

impl Network {
    pub(crate) fn new(kinds: Kinds, faults: u8, offset: u64) -> Self {
        Self {
            kinds,
            now: START,
            turns: 0,
            faults,
            ahead: 1_000 * SECOND + offset,
            is_down: false,
            is_cut: [false; PROCESSES],
            is_paused: [false; PROCESSES],
            begun: [0; PROCESSES],
        }
    }

    /// Returns whose turn it is.
    pub(crate) fn process(&self) -> usize {
        usize::from(self.turns) % PROCESSES
    }

    pub(crate) fn store_time(&self) -> u64 {
        self.now + self.ahead
    }

    /// Returns whether the report of a process arrives at the store.
    pub(crate) fn reaches_store(&self, process: usize, exchange: Exchange) -> bool {
        !self.is_down && !self.is_cut[process] && exchange != Exchange::RequestLost
    }

    pub(crate) fn end_turn(&mut self) {
        self.now += TURN;
        self.turns += 1;
    }

    /// Ends all faults.
    pub(crate) fn recover(&mut self) {
        self.is_down = false;
        self.is_cut = [false; PROCESSES];
        self.is_paused = [false; PROCESSES];
    }

    /// Appends what may happen next. A process does a part of `work` in its turn, the first of which is nothing.
    pub(crate) fn actions<W: Copy>(&self, work: &[W], has_buffered: bool, actions: &mut Vec<Action<W>>) {
        let process = self.process();
        if self.is_paused[process] {
            actions.push(Action::Turn(work[0], Exchange::Complete));
        } else {
            let may_be_lost =
                self.kinds == Kinds::All && self.faults > 0 && self.reaches_store(process, Exchange::Complete);
            for &work in work {
                actions.push(Action::Turn(work, Exchange::Complete));
                if may_be_lost {
                    for exchange in [Exchange::RequestLost, Exchange::ReplyLost, Exchange::Buffered] {
                        actions.push(Action::Turn(work, exchange));
                    }
                }
            }
        }
        if has_buffered && !self.is_down {
            actions.push(Action::Deliver);
        }
        let may_be_down = self.faults > 0 && !self.is_down;
        if self.kinds == Kinds::Starts && may_be_down {
            // While some have their first leases and others have none.
            actions.push(Action::StoreDown);
        }
        // The rest happens between rounds.
        if process != 0 {
            return;
        }
        if self.is_down {
            actions.push(Action::StoreUp);
        }
        for index in 0..PROCESSES {
            if self.is_cut[index] {
                actions.push(Action::Heal(index));
            }
            if self.is_paused[index] {
                actions.push(Action::Resume(index));
            }
        }
        if self.kinds == Kinds::Starts {
            // The first of a round is the next to report.
            let old = [0, PROCESSES - 1].into_iter().filter(|&index| self.begun[index] < self.turns);
            actions.extend(old.map(Action::Start));
        }
        if self.faults == 0 {
            return;
        }
        if self.kinds != Kinds::Starts {
            actions.extend([Action::ClockJump(JUMP), Action::ClockJump(-JUMP)]);
        }
        if self.kinds == Kinds::Jumps {
            return;
        }
        actions.push(Action::StoreEmptied);
        if self.kinds == Kinds::Starts {
            return;
        }
        if may_be_down {
            actions.push(Action::StoreDown);
        }
        // The first and the last of a round; the second is like the last.
        for index in [0, PROCESSES - 1] {
            if !self.is_cut[index] && !self.is_paused[index] {
                actions.extend([Action::Cut(index), Action::Pause(index)]);
            }
        }
    }

    /// Notes what an action changes in the network, and which are faults.
    pub(crate) fn act<W>(&mut self, action: &Action<W>) {
        let is_fault = match *action {
            Action::Turn(_, exchange) => exchange != Exchange::Complete,
            Action::StoreUp | Action::Heal(_) | Action::Resume(_) | Action::Start(_) | Action::Deliver => false,
            Action::StoreDown | Action::StoreEmptied | Action::ClockJump(_) | Action::Cut(_) | Action::Pause(_) => true,
        };
        self.faults -= u8::from(is_fault);
        match *action {
            Action::StoreDown => self.is_down = true,
            Action::StoreUp => self.is_down = false,
            Action::ClockJump(by) => self.ahead = self.ahead.saturating_add_signed(by),
            Action::Cut(index) => self.is_cut[index] = true,
            Action::Heal(index) => self.is_cut[index] = false,
            Action::Pause(index) => self.is_paused[index] = true,
            Action::Resume(index) => self.is_paused[index] = false,
            Action::Start(index) => self.begun[index] = self.turns,
            Action::Turn(..) | Action::StoreEmptied | Action::Deliver => {}
        }
    }
}
