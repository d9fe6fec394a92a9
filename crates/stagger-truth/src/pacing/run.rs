//! One run of a scenario: an event simulation of every task of every client process.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use stagger::guard::{Limiter, LimiterPermit, Turn};
use stagger::{Instant, Outcome};

use super::Nanos;
use super::random::Random;
use super::rivals::{Rival, Start};
use super::scenarios::{Demand, Scenario};
use super::server::{Answer, ONE_WAY, SECOND, Working};

/// What controls the attempts of one process.
#[derive(Debug)]
pub enum Control {
    /// Nothing.
    None,
    /// A model, before which calls wait in line.
    Rival(Box<dyn Rival>),
    /// The shipped guard.
    Shipped(Box<dyn Limiter>),
}

/// What happened in a run.
#[derive(Debug, Default)]
pub struct Log {
    /// Requests, refusals and successes of each second.
    pub seconds: Vec<Second>,
    /// The successes of each process in the measured time.
    pub processes: Vec<u64>,
    /// The longest that a call waited for its controller.
    pub longest_hold: Nanos,
    /// How many attempts were held.
    pub held: u64,
    /// How many calls gave up.
    pub failed: u64,
}

/// A second of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second {
    /// The requests that arrived.
    pub requests: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those that were served.
    pub served: u64,
}

/// The retries of the clients: full jitter from 100 ms to 10 s, ten attempts.
const BASE: f64 = 0.1;
const CAP: f64 = 10.0;
const ATTEMPTS: u32 = 10;
/// How late a timer is at most.
const LATE: f64 = 1e6;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A task begins a call.
    Call,
    /// A task asks to start an attempt.
    Ask,
    /// The request arrives.
    Arrive,
    /// The server is done with the request.
    Leave(u8, Nanos),
    /// The answer arrives.
    Answer(u8, Nanos),
    /// The first waiting call of a process asks again.
    Poke,
}

#[derive(Clone, Copy, Default)]
struct Task {
    process: usize,
    attempts: u32,
    permit: u64,
    asked: Nanos,
    began: Nanos,
}

struct Process {
    control: Control,
    line: VecDeque<u32>,
    poke_at: Nanos,
    in_flight: usize,
}

struct Run<'a> {
    scenario: &'a Scenario,
    random: Random,
    server: Working,
    tasks: Vec<Task>,
    processes: Vec<Process>,
    events: BinaryHeap<Reverse<(Nanos, u64, u32, Step)>>,
    number: u64,
    now: Nanos,
    log: Log,
}

/// Runs the scenario with a controller for each process.
pub fn run(scenario: &Scenario, mut control: impl FnMut() -> Control, seed: u64) -> Log {
    let mut tasks = Vec::new();
    let mut processes = Vec::new();
    let mut starts = Vec::new();
    for (id, process) in scenario.processes().enumerate() {
        processes.push(Process { control: control(), line: VecDeque::new(), poke_at: Nanos::MAX, in_flight: 0 });
        for _ in 0..process.tasks {
            tasks.push(Task { process: id, ..Task::default() });
            starts.push(process.joins);
        }
    }
    let seconds = (scenario.length / SECOND) as usize + 1;
    let log = Log { seconds: vec![Second::default(); seconds], processes: vec![0; processes.len()], ..Log::default() };
    let mut run = Run {
        scenario,
        random: Random::new(seed),
        server: Working::new(scenario.server),
        tasks,
        processes,
        events: BinaryHeap::new(),
        number: 0,
        now: 0,
        log,
    };
    for (task, start) in starts.into_iter().enumerate() {
        let spread = (run.random.unit() * 20e6) as Nanos;
        run.push(start + spread, task as u32, Step::Call);
    }
    run.run();
    run.log
}

impl Run<'_> {
    fn push(&mut self, at: Nanos, task: u32, step: Step) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, task, step)));
    }

    fn run(&mut self) {
        while let Some(Reverse((at, _, id, step))) = self.events.pop() {
            if at >= self.scenario.length {
                break;
            }
            self.now = at;
            match step {
                Step::Call => {
                    let task = &mut self.tasks[id as usize];
                    (task.attempts, task.permit, task.asked) = (0, 0, at);
                    self.ask(id);
                }
                Step::Ask => self.ask(id),
                Step::Arrive => self.arrive(id),
                Step::Leave(kind, hint) => {
                    self.server.in_service -= 1;
                    self.push(at + ONE_WAY, id, Step::Answer(kind, hint));
                }
                Step::Answer(kind, hint) => self.answered(id, unpack(kind, hint)),
                Step::Poke => {
                    let process = &mut self.processes[id as usize];
                    if process.poke_at == at {
                        process.poke_at = Nanos::MAX;
                        self.poke(id as usize);
                    }
                }
            }
        }
    }

    fn ask(&mut self, id: u32) {
        let (now, late) = (self.now, (self.random.unit() * LATE) as Nanos);
        let task = &mut self.tasks[id as usize];
        let process = &mut self.processes[task.process];
        match &mut process.control {
            Control::None => self.start(id),
            Control::Shipped(guard) => match guard.admit(LimiterPermit(task.permit), None, &Instant::from_nanos(now)) {
                Turn::Now(LimiterPermit(permit)) => {
                    task.permit = permit;
                    self.start(id);
                }
                Turn::Wait { after, permit: LimiterPermit(permit) } => {
                    task.permit = permit;
                    self.push(now + after.as_nanos() as Nanos + late, id, Step::Ask);
                }
                Turn::Rejected { .. } => {
                    task.permit = 0;
                    self.retry(id, None);
                }
            },
            Control::Rival(_) => {
                process.line.push_back(id);
                if process.line.len() == 1 {
                    let process = task.process;
                    self.poke(process);
                }
            }
        }
    }

    fn poke(&mut self, id: usize) {
        loop {
            let draw = self.random.unit();
            let process = &mut self.processes[id];
            let Control::Rival(rival) = &mut process.control else { return };
            let Some(&first) = process.line.front() else { return };
            match rival.start(self.now, process.in_flight, draw) {
                Start::Now => {
                    process.line.pop_front();
                    self.start(first);
                }
                Start::At(at) => {
                    if at < process.poke_at {
                        process.poke_at = at;
                        self.push(at, id as u32, Step::Poke);
                    }
                    return;
                }
                Start::WhenAnswered => return,
                Start::Rejected => {
                    process.line.pop_front();
                    self.retry(first, None);
                }
            }
        }
    }

    fn start(&mut self, id: u32) {
        let task = &mut self.tasks[id as usize];
        let held = self.now - task.asked;
        self.log.held += u64::from(held > 0);
        self.log.longest_hold = self.log.longest_hold.max(held);
        task.began = self.now;
        task.attempts += 1;
        self.processes[task.process].in_flight += 1;
        self.push(self.now + ONE_WAY, id, Step::Arrive);
    }

    fn second(&mut self) -> &mut Second {
        &mut self.log.seconds[(self.now / SECOND) as usize]
    }

    fn arrive(&mut self, id: u32) {
        let (leaves, answer) = self.server.take(self.now, &mut self.random);
        let second = self.second();
        second.requests += 1;
        let (kind, hint) = pack(answer);
        if matches!(answer, Answer::Refused(_)) {
            second.refused += 1;
            self.push(self.now + ONE_WAY, id, Step::Answer(kind, hint));
        } else {
            self.push(leaves, id, Step::Leave(kind, hint));
        }
    }

    fn answered(&mut self, id: u32, answer: Answer) {
        let task = self.tasks[id as usize];
        let process = &mut self.processes[task.process];
        process.in_flight -= 1;
        match &mut process.control {
            Control::None => {}
            Control::Rival(rival) => rival.answered(task.began, self.now, answer, process.in_flight),
            Control::Shipped(guard) => {
                let outcome = match answer {
                    Answer::Success => Outcome::Success,
                    Answer::Error => Outcome::TRANSIENT,
                    Answer::Refused(_) => Outcome::throttled(None),
                };
                guard.record(LimiterPermit(task.permit), &outcome, &Instant::from_nanos(self.now));
            }
        }
        self.tasks[id as usize].permit = 0;
        if answer == Answer::Success {
            self.second().served += 1;
            if self.now >= self.scenario.measured_from {
                self.log.processes[task.process] += 1;
            }
            let think = self.think(task);
            self.push(self.now + think, id, Step::Call);
        } else {
            let hint = if let Answer::Refused(hint) = answer { hint } else { None };
            self.retry(id, hint);
        }
        self.poke(task.process);
    }

    fn retry(&mut self, id: u32, hint: Option<Nanos>) {
        let task = &mut self.tasks[id as usize];
        task.attempts = task.attempts.max(1);
        if task.attempts >= ATTEMPTS {
            self.log.failed += 1;
            self.push(self.now + SECOND, id, Step::Call);
            return;
        }
        let ceiling = (BASE * f64::from(1_u32 << (task.attempts - 1).min(10))).min(CAP);
        let delay = (self.random.unit() * ceiling * SECOND as f64) as Nanos + hint.unwrap_or(0);
        let at = self.now + delay;
        self.tasks[id as usize].asked = at;
        self.push(at, id, Step::Ask);
    }

    /// Returns how long a task thinks before its next call.
    fn think(&mut self, task: Task) -> Nanos {
        let took = (self.now - task.began) as f64;
        let tasks = self.tasks.len() as f64;
        let draw = -(1.0 - self.random.unit()).ln();
        let per_second = match self.scenario.demand {
            Demand::Saturating => return 0,
            Demand::Rate(rate) => rate,
            Demand::Bursts { on, off } => {
                let phase = self.now % (on + off);
                return if phase < on { 0 } else { on + off - phase };
            }
            Demand::Diurnal { mean, period } => {
                let phase = (self.now % period) as f64 / period as f64 * core::f64::consts::TAU;
                mean * (1.0 - 0.8 * phase.cos())
            }
        };
        (tasks / per_second * SECOND as f64 * draw - took).max(0.0) as Nanos
    }
}

fn pack(answer: Answer) -> (u8, Nanos) {
    match answer {
        Answer::Success => (0, 0),
        Answer::Error => (1, 0),
        Answer::Refused(None) => (2, 0),
        Answer::Refused(Some(hint)) => (3, hint),
    }
}

fn unpack(kind: u8, hint: Nanos) -> Answer {
    match kind {
        0 => Answer::Success,
        1 => Answer::Error,
        2 => Answer::Refused(None),
        _ => Answer::Refused(Some(hint)),
    }
}
