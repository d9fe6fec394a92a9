//! Mass disconnects whose clients have guards, with the machines of the library.

use core::time::Duration;
use std::sync::Arc;

use stagger_core::guard::{Guard, Permits};
use stagger_core::machine::{Decision, Generation, ReconnectMachine, ReconnectStep, RetryMachine, RetryState};
use stagger_core::{Guards, Instant, Outcome, Policy, Seed, ServerHint};

use super::server::{Acceptor, Server};
use super::tally::Tally;
use super::{FirstAttempt, ReconnectFigures, ReconnectScenario};
use crate::client_policy::ClientPolicy;
use crate::engine::{Simulation, instant, micros, micros_up};
use crate::environment::Environment;
use crate::outage::{Fleet, ProcessGuards};

/// The simulation of a mass disconnect whose clients share guards. Every decision is an event of its own, so that the
/// guards see them in the order of time.
pub(super) struct GuardedSimulation<'a, S: Server> {
    scenario: &'a ReconnectScenario,
    policy: &'a Policy,
    environment: Environment,
    server: S,
    acceptor: Acceptor,
    tally: Tally,
    machines: Vec<ClientMachine>,
    processes: Vec<ProcessGuards>,
    fleet: Fleet,
    held: u64,
}

/// How long the processes have shared their budget when the connections are lost, in microseconds.
const BEGUN: u64 = 10_000_000;

#[derive(Clone, Copy)]
pub(super) struct Client<N> {
    token: N,
    next: NextEvent,
    /// When the next attempt was decided on, in microseconds.
    decided: u64,
    arrived: Option<u64>,
    is_held: bool,
}

/// The next event of a client.
///
/// ```text
///            ┌──── a guard lets it wait
///            ▼    │
/// Lose ─► Connect ┴─► Arrive ─► Open
///            ▲             └──► Fail
///            └── after the delay ┘
/// ```
///
/// After `Lose`, `Connect` and `Fail` a client may give up, or go on after the horizon.
#[derive(Clone, Copy)]
enum NextEvent {
    Lose,
    Connect,
    Arrive,
    Open,
    Fail(Option<ServerHint>),
}

impl<'a, S: Server> GuardedSimulation<'a, S> {
    pub(super) fn new(
        scenario: &'a ReconnectScenario,
        policy: &'a Policy,
        guards: &dyn Fn(Seed) -> ProcessGuards,
        seed: Seed,
        server: S,
    ) -> Self {
        let own = seed.for_call(3);
        let mut processes: Vec<_> = (0..u64::from(scenario.processes())).map(|nth| guards(own.for_call(nth))).collect();
        let way = scenario.network.min_round_trip() / 2;
        let fleet = Fleet::start(&mut processes, scenario.store, way, BEGUN, scenario.horizon, seed.for_call(4));
        let machines = 0..scenario.clients as u32;
        Self {
            scenario,
            policy,
            environment: Environment::new(seed),
            server,
            acceptor: Acceptor::new(scenario.rate(), scenario.backlog),
            tally: Tally::default(),
            machines: machines.map(|id| ClientMachine::new(scenario.first_attempt, policy, seed, id)).collect(),
            fleet,
            processes,
            held: 0,
        }
    }

    pub(super) fn figures(self) -> ReconnectFigures {
        let mut figures = self.tally.figures(self.scenario, self.acceptor.peak_backlog());
        (figures.held, figures.leases) = (self.held, self.fleet.figures());
        figures
    }

    fn lost_at(&self, id: u32) -> u64 {
        self.environment.disconnect_time(id, self.scenario.disconnect_window)
    }

    /// Returns the process of a client. Clients of a process have consecutive numbers.
    fn process_of(&self, id: u32) -> usize {
        (u64::from(id) * self.processes.len() as u64 / self.scenario.clients) as usize
    }

    fn handle(&mut self, at: u64, id: u32, client: &mut Client<S::Token>) -> Option<u64> {
        match client.next {
            NextEvent::Lose => {
                if id < self.scenario.sample {
                    self.tally.sample.losses.record(id, at);
                }
                let guards = self.processes[self.process_of(id)].guards();
                let next = self.machines[id as usize].lose(self.policy, at, &guards);
                self.decided(id, client, at, next)
            }
            NextEvent::Connect => self.connect(at, id, client),
            NextEvent::Arrive => self.arrive(at, id, client),
            NextEvent::Open => {
                let guards = self.processes[self.process_of(id)].guards();
                self.machines[id as usize].open(self.policy, at, &guards);
                self.tally.connected(at, at - self.lost_at(id), self.machines[id as usize].attempts());
                if id < self.scenario.sample {
                    self.tally.sample.connects.record(id, at);
                }
                None
            }
            NextEvent::Fail(hint) => self.fail(at, id, client, hint),
        }
    }

    /// Notes when the next attempt is due, or that there is none.
    fn decided(&mut self, id: u32, client: &mut Client<S::Token>, at: u64, next: Option<u64>) -> Option<u64> {
        client.next = NextEvent::Connect;
        client.decided = at;
        if next.is_none() {
            self.tally.gave_up(self.machines[id as usize].attempts());
        }
        self.before_horizon(next)
    }

    /// Returns the time of an event, unless it is after the horizon.
    fn before_horizon(&mut self, next: Option<u64>) -> Option<u64> {
        if next? > self.scenario.horizon {
            self.tally.unfinished += 1;
            return None;
        }
        next
    }

    fn connect(&mut self, at: u64, id: u32, client: &mut Client<S::Token>) -> Option<u64> {
        let [_, way] = self.environment.message_bits(id, self.machines[id as usize].attempts());
        let least = client.arrived.map_or(at, |arrived| arrived + 1);
        let arrives = at.saturating_add(self.scenario.network.delay(way)).max(least);
        self.before_horizon(Some(arrives))?;
        let guards = self.processes[self.process_of(id)].guards();
        match self.machines[id as usize].connect(self.policy, at, &guards) {
            Due::Now => {
                self.tally.total_wait += at - client.decided;
                self.tally.in_flight.start(at);
                (client.next, client.is_held) = (NextEvent::Arrive, false);
                Some(arrives)
            }
            Due::At(next) => {
                self.held += u64::from(!client.is_held);
                client.is_held = true;
                self.before_horizon(Some(next.max(at + 1)))
            }
            Due::Never => {
                self.tally.gave_up(self.machines[id as usize].attempts());
                None
            }
        }
    }

    fn arrive(&mut self, at: u64, id: u32, client: &mut Client<S::Token>) -> Option<u64> {
        self.tally.arrivals.add(at);
        if id < self.scenario.sample {
            self.tally.sample.arrivals.record(id, at);
        }
        client.arrived = Some(at);
        let [answer, _] = self.environment.message_bits(id, self.machines[id as usize].attempts());
        let back = self.scenario.network.delay(answer);
        let is_up = at >= self.scenario.up_at;
        match if is_up { self.server.arrive(&mut self.acceptor, at, &mut client.token) } else { Err(None) } {
            Ok(done) => {
                client.next = NextEvent::Open;
                self.before_horizon(Some(done.saturating_add(back)))
            }
            Err(hint) => {
                client.next = NextEvent::Fail(hint);
                let heard = at + back;
                if heard > self.scenario.horizon { self.fail(heard, id, client, hint) } else { Some(heard) }
            }
        }
    }

    fn fail(&mut self, at: u64, id: u32, client: &mut Client<S::Token>, hint: Option<ServerHint>) -> Option<u64> {
        self.tally.in_flight.end(at);
        let outcome = if hint.is_some() { Outcome::throttled(hint) } else { Outcome::TRANSIENT };
        let guards = self.processes[self.process_of(id)].guards();
        let next = self.machines[id as usize].fail(self.policy, outcome, at, &guards);
        self.decided(id, client, at, next)
    }
}

impl<S: Server> Simulation for GuardedSimulation<'_, S> {
    type Client = Client<S::Token>;

    fn client_count(&self) -> u32 {
        self.scenario.clients as u32
    }

    fn new_client(&self) -> Self::Client {
        Client { token: S::Token::default(), next: NextEvent::Lose, decided: 0, arrived: None, is_held: false }
    }

    fn first_event(&mut self, id: u32, _: &mut Self::Client) -> Option<u64> {
        Some(self.lost_at(id))
    }

    fn handle_event(&mut self, at: u64, id: u32, client: &mut Self::Client) -> Option<u64> {
        self.fleet.advance(at);
        let mut next = self.handle(at, id, client);
        // The engine requires time to advance; what follows at once belongs to this event.
        while next.is_some_and(|next| next <= at) {
            next = self.handle(at, id, client);
        }
        let process = self.process_of(id) as u32;
        self.fleet.on_call(process, at);
        next
    }

    fn finished_clients(&self) -> u64 {
        self.tally.finished()
    }
}

/// A client with guards: the machine of the library that decides when it connects. Times are in microseconds.
enum ClientMachine {
    /// A connection that is kept up.
    Connection { machine: ReconnectMachine, generation: Generation, until: Instant },
    /// A call that makes its first attempt at once.
    Call { state: RetryState, seed: Seed, permits: Permits },
}

/// When an attempt that is due may start.
enum Due {
    Now,
    /// It waits for its turn and asks again at this time.
    At(u64),
    Never,
}

/// The connections that are lost have been open for a year: longer than any policy asks of a stable connection.
const ORIGIN: u64 = 365 * 86_400 * 1_000_000;

fn clock(at: u64) -> Instant {
    instant(ORIGIN + at)
}

impl ClientMachine {
    fn new(first: FirstAttempt, policy: &Policy, run: Seed, id: u32) -> Self {
        let seed = ClientPolicy::seed_of_client(run, id);
        if first == FirstAttempt::Immediate {
            return Self::Call { state: RetryState::new(), seed, permits: Permits::NONE };
        }
        let (mut machine, now) = (ReconnectMachine::new(seed), Instant::ZERO);
        // The guards have forgotten this connection.
        let _ = machine.reconnect_now(policy, || now, &Guards::none());
        let generation = machine.generation();
        let _ = machine.opened(generation, || now, &Guards::none());
        Self::Connection { machine, generation, until: now }
    }

    /// Returns the number of attempts so far.
    const fn attempts(&self) -> u32 {
        match self {
            Self::Connection { machine, .. } => machine.attempt(),
            Self::Call { state, .. } => state.attempt(),
        }
    }

    /// Handles the loss of the connection. Returns when the first attempt is due; `None` if there is none.
    fn lose(&mut self, policy: &Policy, now: u64, guards: &Guards<'_, Arc<dyn Guard>>) -> Option<u64> {
        match self {
            Self::Connection { .. } => self.fail(policy, Outcome::TRANSIENT, now, guards),
            Self::Call { state, seed, .. } => {
                let spread = RetryMachine::new(policy, state, *seed).spread(|| clock(now));
                Some(now.saturating_add(micros(spread)))
            }
        }
    }

    /// Starts an attempt that is due, unless a guard rejects it or lets it wait.
    fn connect(&mut self, policy: &Policy, now: u64, guards: &Guards<'_, Arc<dyn Guard>>) -> Due {
        match self {
            Self::Connection { machine, generation, until } => {
                // A wait may end within this microsecond.
                match machine.due(policy, clock(now).max(*until), guards) {
                    ReconnectStep::Connect { generation: next } => {
                        *generation = next;
                        Due::Now
                    }
                    ReconnectStep::Wait { until: next, .. } => {
                        *until = next;
                        Due::At(now.saturating_add(micros_up(next.saturating_since(clock(now)))))
                    }
                    _ => Due::Never,
                }
            }
            Self::Call { state, seed, permits } => {
                let mut retry = RetryMachine::new(policy, state, *seed);
                match retry.turn(permits, || clock(now), guards) {
                    Ok(Duration::ZERO) => Due::Now,
                    Ok(wait) => Due::At(now.saturating_add(micros_up(wait))),
                    Err(_) => Due::Never,
                }
            }
        }
    }

    /// Handles a failed attempt. Returns when the next one is due; `None` if there is none.
    fn fail(
        &mut self,
        policy: &Policy,
        outcome: Outcome,
        now: u64,
        guards: &Guards<'_, Arc<dyn Guard>>,
    ) -> Option<u64> {
        match self {
            Self::Connection { machine, generation, until } => {
                let step = machine.ended(*generation, outcome, clock(now), policy, guards);
                let ReconnectStep::Wait { after, until: next, .. } = step else { return None };
                *until = next;
                Some(now.saturating_add(micros(after)))
            }
            Self::Call { state, seed, permits } => {
                let permit = Permits::take(permits);
                let decision = RetryMachine::new(policy, state, *seed).decide(outcome, permit, || clock(now), guards);
                let Decision::Retry { after, permit, .. } = decision else { return None };
                *permits = permit;
                Some(now.saturating_add(micros(after)))
            }
        }
    }

    /// Handles the success of an attempt.
    fn open(&mut self, policy: &Policy, now: u64, guards: &Guards<'_, Arc<dyn Guard>>) {
        match self {
            Self::Connection { machine, generation, .. } => {
                let _ = machine.opened(*generation, || clock(now), guards);
            }
            Self::Call { state, seed, permits } => {
                let permit = Permits::take(permits);
                let _ = RetryMachine::new(policy, state, *seed).decide(Outcome::Success, permit, || clock(now), guards);
            }
        }
    }
}
