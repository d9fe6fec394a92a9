//! Runs of an outage: requests, their attempts, and the server.

use core::time::Duration;
use std::collections::VecDeque;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{FailureKind, Outcome, Policy, Seed, ServerHint, StopReason};

use super::course::{Course, note};
use super::verdict::{GOOD_PERCENT, JudgedWindows};
use super::{Fleet, OutageFigures, OutageKind, OutageScenario, ProcessGuards, longest_call};
use crate::distributions::exponential;
use crate::engine::{Engine, MAX_TIME, Progress, Simulation, instant, micros, micros_up};

impl OutageScenario {
    /// Runs the scenario with this policy. `guards` is called once per process, with a seed for guards that use
    /// randomness; `seed` is the seed of the run.
    #[must_use]
    pub fn run(&self, policy: &Policy, guards: impl Fn(Seed) -> ProcessGuards, seed: Seed) -> OutageFigures {
        // This progress is not shared, so it is never cancelled.
        self.run_with_progress(policy, guards, seed, &Progress::new()).unwrap_or_default()
    }

    /// Runs the scenario like [`run`](Self::run) and reports its progress; returns `None` if it was cancelled.
    #[must_use]
    pub fn run_with_progress(
        &self,
        policy: &Policy,
        guards: impl Fn(Seed) -> ProcessGuards,
        seed: Seed,
        progress: &Progress,
    ) -> Option<OutageFigures> {
        let own = seed.for_call(3);
        let processes = (0..self.processes).map(|process| guards(own.for_call(u64::from(process)))).collect();
        let mut simulation = OutageSimulation::new(self, policy, processes, seed);
        // Delays have no minimum.
        Engine::Heap.run(&mut simulation, progress).ok()?;
        Some(simulation.into_figures())
    }

    /// Returns the course of a run at its start.
    fn course(&self, policy: &Policy, window: Duration) -> Course {
        let hint = self.retry_after.map_or(Duration::ZERO, Duration::from_micros);
        let longest = longest_call(policy, Duration::from_micros(self.timeout), hint);
        let work = Duration::try_from_secs_f64(f64::from(self.queue) / self.capacity).unwrap_or(Duration::MAX);
        Course::new(window, longest, work, vec![self.capacity])
    }

    /// Returns the time at which the requests that arrive before the horizon are settled: at most after another
    /// horizon, and as many requests as fit. Calls that guards let wait may take as long as they like.
    fn settled_at(&self, policy: &Policy, can_wait: bool) -> u64 {
        let fits = MAX_TIME.min((Self::MAX_REQUESTS as f64 / (1.1 * self.rate) * 1e6) as u64);
        let hint = self.retry_after.map_or(Duration::ZERO, Duration::from_micros);
        let longest = match longest_call(policy, Duration::from_micros(self.timeout), hint) {
            Some(longest) if !can_wait => micros(longest),
            _ => u64::MAX,
        };
        // A microsecond per attempt, because time advances from event to event; a second is more than enough.
        self.horizon.saturating_add(longest.saturating_add(1_000_000).min(self.horizon)).min(fits).max(self.horizon)
    }
}

/// The simulation of an outage: all requests, their processes and one server.
struct OutageSimulation<'a> {
    scenario: &'a OutageScenario,
    policy: &'a Policy,
    /// Seeds of the requests.
    seeds: Seed,
    processes: Vec<ProcessGuards>,
    server: Server,
    arrivals: Arrivals,
    /// Arrival time and process of each request so far, and of the next one.
    requests: Vec<(u64, u32)>,
    permits: Vec<Permits>,
    /// The processes that share a budget.
    fleet: Fleet,
    /// The end of the simulation, at which the requests that arrived before the horizon are settled.
    end: u64,
    /// Number of requests that arrived before the horizon, and are not settled.
    unsettled: u64,
    figures: OutageFigures,
    /// Retries that guards let through, and those that they did not.
    granted: u64,
    refused: u64,
    /// Number of requests without further events.
    finished: u64,
}

#[derive(Clone, Copy)]
struct Request {
    state: RetryState,
    next: NextEvent,
    /// Whether a guard lets it wait for its turn.
    is_held: bool,
}

/// The next event of a request: at the client or, for `Arrive`, at the server.
///
/// ```text
///          ┌──── a guard lets it wait
///          ▼   │
/// ──────► Send ┴─► Arrive ─► Succeed ─────────────────────────────► done
///          ▲ │          └──► Fail, BeThrottled, BeRejected ─┬─────► stopped by the policy or a guard
///          │ └─ rejected by a guard                         │
///          └──────────────────── after the delay ───────────┘
/// ```
#[derive(Clone, Copy)]
enum NextEvent {
    Send,
    Arrive,
    Succeed,
    Fail,
    /// The queue was full, or the server throttles.
    BeThrottled,
    /// The server rejected the attempt, because it is down.
    BeRejected,
}

impl<'a> OutageSimulation<'a> {
    fn new(scenario: &'a OutageScenario, policy: &'a Policy, mut processes: Vec<ProcessGuards>, seed: Seed) -> Self {
        let settled = scenario.settled_at(policy, processes.iter().any(|process| !process.is_empty()));
        let (one_way, horizon) = (scenario.one_way, scenario.horizon);
        let fleet = Fleet::start(&mut processes, scenario.store, one_way, 0, horizon, seed.for_call(4));
        let (start, end) = (scenario.start, scenario.start + scenario.duration);
        let windows = JudgedWindows::new(scenario.rate, [start, end], horizon, GOOD_PERCENT);
        Self {
            scenario,
            policy,
            seeds: seed.for_call(0),
            server: Server::new(scenario.capacity, scenario.queue, scenario.outage, start, end),
            permits: Vec::new(),
            fleet,
            processes,
            arrivals: Arrivals::new(scenario, seed),
            requests: Vec::new(),
            end: settled,
            unsettled: 0,
            figures: OutageFigures {
                rate: scenario.rate,
                outage_start: Duration::from_micros(start),
                outage_end: Duration::from_micros(end),
                horizon: Duration::from_micros(horizon),
                course: scenario.course(policy, windows.width()),
                windows,
                ..OutageFigures::default()
            },
            granted: 0,
            refused: 0,
            finished: 0,
        }
    }

    fn into_figures(self) -> OutageFigures {
        OutageFigures { leases: self.fleet.figures(), ..self.figures }
    }

    /// Returns the time of the next event of a request, if it is before the end; otherwise the request is finished.
    fn before_end(&mut self, id: u32, next: Option<u64>) -> Option<u64> {
        let next = next.filter(|next| *next < self.end);
        if next.is_none() {
            self.finished += 1;
            self.unsettled -= u64::from(self.is_recorded(self.requests[id as usize].0));
        }
        next
    }

    /// Returns whether an event at `at` counts in the figures.
    const fn is_recorded(&self, at: u64) -> bool {
        at < self.scenario.horizon
    }

    /// Returns the outcome of a rejected attempt. One with a hint is throttled.
    fn rejected(&self, kind: FailureKind) -> Outcome {
        match self.scenario.retry_after {
            Some(after) => Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_micros(after)))),
            None => Outcome::Failed { kind, hint: None },
        }
    }

    /// Sends an attempt, unless a guard rejects it or lets it wait. Returns its arrival time, or when to ask again.
    fn send(&mut self, now: u64, id: u32, request: &mut Request) -> Option<u64> {
        let process = &self.processes[self.requests[id as usize].1 as usize];
        let guards = process.guards();
        let mut retry = RetryMachine::new(self.policy, &mut request.state, self.seeds.for_call(u64::from(id)));
        let permits = &mut self.permits[id as usize];
        let begun = match retry.turn(permits, || instant(now), &guards) {
            Ok(Duration::ZERO) => Ok(()),
            Ok(wait) => {
                self.figures.held += u64::from(now < self.scenario.horizon && !request.is_held);
                (request.next, request.is_held) = (NextEvent::Send, true);
                return Some(now.saturating_add(micros_up(wait)));
            }
            Err(reason) => Err(reason),
        };
        let nth = request.state.attempt();
        request.is_held = false;
        match begun {
            Ok(()) => {
                if self.is_recorded(now) {
                    self.figures.attempts.add(now);
                    let is_from_start = self.requests[id as usize].0 >= self.scenario.start;
                    self.figures.from_start.attempts += u64::from(is_from_start);
                    self.figures.retries += u64::from(now >= self.scenario.start && nth > 1);
                }
                request.next = NextEvent::Arrive;
                Some(now + self.scenario.one_way)
            }
            Err(_) => {
                self.figures.rejected += u64::from(self.is_recorded(now));
                None
            }
        }
    }

    /// Handles the arrival of an attempt. Returns when the client learns of the outcome.
    fn arrive(&mut self, now: u64, request: &mut Request) -> u64 {
        let OutageScenario { one_way, timeout, .. } = *self.scenario;
        // The timeout is at least a round trip, so a client always learns of an immediate rejection.
        let (gives_up, soon) = (now - one_way + timeout, now + one_way);
        let done = self.server.arrive(now);
        note(&mut self.figures.queue, now, self.server.done.len() as u32);
        let (next, heard) = match done {
            Ok(done) if done + one_way as f64 <= gives_up as f64 => (NextEvent::Succeed, done as u64 + one_way),
            Ok(_) => (NextEvent::Fail, gives_up),
            Err(Rejection::QueueFull | Rejection::Throttled) => (NextEvent::BeThrottled, soon),
            Err(Rejection::Down) => (NextEvent::BeRejected, soon),
        };
        request.next = next;
        heard
    }

    /// Handles the outcome of an attempt at the client. Returns the time of the next event, if any.
    fn handle_outcome(&mut self, now: u64, id: u32, request: &mut Request, outcome: Outcome) -> Option<u64> {
        let (arrived_at, process) = self.requests[id as usize];
        let mut retry = RetryMachine::new(self.policy, &mut request.state, self.seeds.for_call(u64::from(id)));
        let permit = Permits::take(&mut self.permits[id as usize]);
        let process = &self.processes[process as usize];
        let decision = retry.decide(outcome, permit, || instant(now), &process.guards());
        if !process.is_empty() {
            self.granted += u64::from(matches!(decision, Decision::Retry { .. }));
            self.refused += u64::from(matches!(decision, Decision::Stop(StopReason::Guard(_))));
            note(&mut self.figures.course.granted, now, self.granted);
            note(&mut self.figures.course.refused, now, self.refused);
        }
        match decision {
            Decision::Retry { after, permit, .. } => {
                self.permits[id as usize] = permit;
                match micros(after) {
                    0 => self.send(now, id, request),
                    after => {
                        request.next = NextEvent::Send;
                        Some(now.saturating_add(after))
                    }
                }
            }
            decision => {
                let is_recorded = self.is_recorded(now);
                self.figures.rejected += u64::from(is_recorded && is_rejection(&decision));
                if decision == Decision::Done {
                    if is_recorded {
                        self.figures.successes.add(now);
                    }
                    if self.is_recorded(arrived_at) {
                        self.figures.served.add(arrived_at);
                        self.figures.windows.served(arrived_at);
                    }
                }
                None
            }
        }
    }
}

/// Returns whether a guard other than a budget has stopped the call.
fn is_rejection(decision: &Decision) -> bool {
    match decision {
        Decision::Stop(reason @ StopReason::Guard(_)) => *reason != StopReason::BUDGET,
        _ => false,
    }
}

/// A Poisson process of requests.
struct Arrivals {
    gaps: Seed,
    places: Seed,
    /// The mean time between two, in microseconds.
    mean: f64,
    processes: u128,
    at: f64,
    count: u64,
}

impl Arrivals {
    const fn new(scenario: &OutageScenario, seed: Seed) -> Self {
        let (gaps, places) = (seed.for_call(1), seed.for_call(2));
        Self { gaps, places, mean: 1e6 / scenario.rate, processes: scenario.processes as u128, at: 0.0, count: 0 }
    }

    /// Returns the time and the process of the next one.
    fn next(&mut self) -> (u64, u32) {
        let n = self.count;
        self.count += 1;
        self.at += self.mean * exponential(self.gaps.draw(n));
        (self.at as u64, ((u128::from(self.places.draw(n)) * self.processes) >> 64) as u32)
    }
}

impl Simulation for OutageSimulation<'_> {
    type Client = Request;

    /// The expected number.
    fn client_count(&self) -> u32 {
        (self.scenario.rate * self.scenario.horizon as f64 / 1e6) as u32
    }

    fn next_start(&mut self, _: u32) -> Option<u64> {
        let (at, process) = self.arrivals.next();
        let is_settled = self.unsettled == 0 && !self.is_recorded(at);
        if is_settled || at >= self.end || self.requests.len() == OutageScenario::MAX_REQUESTS {
            return None;
        }
        self.requests.push((at, process));
        self.permits.push(Permits::NONE);
        Some(at)
    }

    fn new_client(&self) -> Self::Client {
        Request { state: RetryState::new(), next: NextEvent::Send, is_held: false }
    }

    fn first_event(&mut self, id: u32, request: &mut Request) -> Option<u64> {
        let (arrived_at, _) = self.requests[id as usize];
        if self.is_recorded(arrived_at) {
            self.unsettled += 1;
            self.figures.requests.add(arrived_at);
            self.figures.from_start.requests += u64::from(arrived_at >= self.scenario.start);
            self.figures.windows.arrived(arrived_at);
        }
        let mut retry = RetryMachine::new(self.policy, &mut request.state, self.seeds.for_call(u64::from(id)));
        let first = arrived_at.saturating_add(micros(retry.spread(|| instant(arrived_at))));
        self.before_end(id, Some(first))
    }

    fn handle_event(&mut self, at: u64, id: u32, request: &mut Request) -> Option<u64> {
        self.fleet.advance(at);
        if self.unsettled == 0 && at >= self.scenario.horizon {
            // The requests that are left do not count.
            self.finished += 1;
            return None;
        }
        let next = match request.next {
            NextEvent::Send => self.send(at, id, request),
            NextEvent::Arrive => Some(self.arrive(at, request)),
            NextEvent::Succeed => self.handle_outcome(at, id, request, Outcome::Success),
            NextEvent::Fail => self.handle_outcome(at, id, request, Outcome::TRANSIENT),
            NextEvent::BeThrottled => self.handle_outcome(at, id, request, self.rejected(FailureKind::Throttled)),
            NextEvent::BeRejected => self.handle_outcome(at, id, request, self.rejected(FailureKind::Transient)),
        };
        self.fleet.on_call(self.requests[id as usize].1, at);
        // The engine requires time to advance.
        self.before_end(id, next.map(|next| next.max(at + 1)))
    }

    fn finished_clients(&self) -> u64 {
        self.finished
    }
}

/// A server with one queue that processes one job after the other. Times are in microseconds.
struct Server {
    service: f64,
    room: usize,
    outage: OutageKind,
    from: f64,
    until: f64,
    /// Completion time of each job in the system.
    done: VecDeque<f64>,
}

/// Why an attempt that has arrived is not processed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rejection {
    QueueFull,
    Throttled,
    Down,
}

impl Server {
    fn new(rate: f64, room: u32, outage: OutageKind, from: u64, until: u64) -> Self {
        let (from, until) = (from as f64, until as f64);
        Self { service: 1e6 / rate, room: room as usize, outage, from, until, done: VecDeque::new() }
    }

    /// Returns the time at which the job of this attempt is complete.
    fn arrive(&mut self, at: u64) -> Result<f64, Rejection> {
        let at = at as f64;
        let is_out = at >= self.from && at < self.until;
        match self.outage {
            OutageKind::Reject if is_out => return Err(Rejection::Down),
            OutageKind::Throttle if is_out => return Err(Rejection::Throttled),
            _ => {}
        }
        while self.done.front().is_some_and(|&done| done <= at) {
            self.done.pop_front();
        }
        if self.done.len() >= self.room {
            return Err(Rejection::QueueFull);
        }
        let start = self.done.back().map_or(at, |&last| last.max(at));
        let done = if self.outage == OutageKind::Stall { self.done_after_stall(start) } else { start + self.service };
        self.done.push_back(done);
        Ok(done)
    }

    /// Returns the completion time of a job that would start at `start`, taking the stall into account.
    fn done_after_stall(&self, start: f64) -> f64 {
        if start >= self.from && start < self.until {
            return self.until + self.service;
        }
        let done = start + self.service;
        if start < self.from && done > self.from { done + (self.until - self.from) } else { done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_sequential_and_wait_for_the_end_of_a_stall() {
        let (full, down) = (Err(Rejection::QueueFull), Err(Rejection::Down));
        let [stall, reject, throttle] = [OutageKind::Stall, OutageKind::Reject, OutageKind::Throttle];
        // A thousand jobs per second, and an outage from 10 to 20 ms.
        for (claim, outage, room, arrivals, want) in [
            (
                "jobs are processed sequentially",
                stall,
                2,
                &[0, 0, 0, 1_000, 5_000][..],
                &[Ok(1e3), Ok(2e3), full, Ok(3e3), Ok(6e3)][..],
            ),
            (
                "during a stall the current job pauses, and no job starts",
                stall,
                9,
                &[9_500, 9_600, 15_000, 30_000],
                &[Ok(20_500.0), Ok(21_500.0), Ok(22_500.0), Ok(31_000.0)],
            ),
            ("a job that would start with the stall starts after it", stall, 9, &[10_000], &[Ok(21_000.0)]),
            (
                "a rejecting server processes its queue",
                reject,
                9,
                &[9_500, 9_600, 10_000, 19_999, 20_000],
                &[Ok(10_500.0), Ok(11_500.0), down, down, Ok(21_000.0)],
            ),
            (
                "a server that throttles processes its queue",
                throttle,
                9,
                &[9_500, 10_000, 20_000],
                &[Ok(10_500.0), Err(Rejection::Throttled), Ok(21_000.0)],
            ),
        ] {
            let mut server = Server::new(1_000.0, room, outage, 10_000, 20_000);
            let got: Vec<_> = arrivals.iter().map(|&at| server.arrive(at)).collect();
            assert_eq!(got, want, "{claim}");
        }
    }
}
