use stagger_core::{Outcome, Policy, Seed, ServerHint};

use super::link::{Due, Link};
use super::server::{Acceptor, Server};
use super::tally::Tally;
use super::{ReconnectFigures, ReconnectScenario};
use crate::engine::Simulation;
use crate::environment::random::Environment;
use crate::outage::{Fleet, ProcessGuards};

/// The simulation of a mass disconnect whose clients share guards. Every decision is an event of its own, so that the guards see
/// them in the order of time.
pub(super) struct GuardedSimulation<'a, S: Server> {
    scenario: &'a ReconnectScenario,
    policy: &'a Policy,
    environment: Environment,
    server: S,
    acceptor: Acceptor,
    tally: Tally,
    links: Vec<Link>,
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
        let links = 0..scenario.clients as u32;
        Self {
            scenario,
            policy,
            environment: Environment::new(seed),
            server,
            acceptor: Acceptor::new(scenario.rate(), scenario.backlog),
            tally: Tally::default(),
            links: links.map(|id| Link::new(scenario.first_attempt, policy, seed, id)).collect(),
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
                let guards = self.processes[self.process_of(id)].all();
                let next = self.links[id as usize].lose(self.policy, at, &guards);
                self.decided(id, client, at, next)
            }
            NextEvent::Connect => self.connect(at, id, client),
            NextEvent::Arrive => self.arrive(at, id, client),
            NextEvent::Open => {
                let guards = self.processes[self.process_of(id)].all();
                self.links[id as usize].open(self.policy, at, &guards);
                self.tally.connected(at, at - self.lost_at(id), self.links[id as usize].attempts());
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
        (client.next, client.decided) = (NextEvent::Connect, at);
        if next.is_none() {
            self.tally.gave_up(self.links[id as usize].attempts());
        }
        self.before_horizon(next)
    }

    /// Returns the time of an event, unless it is after the horizon.
    fn before_horizon(&mut self, next: Option<u64>) -> Option<u64> {
        let is_late = next.is_some_and(|next| next > self.scenario.horizon);
        self.tally.unfinished += u64::from(is_late);
        next.filter(|_| !is_late)
    }

    fn connect(&mut self, at: u64, id: u32, client: &mut Client<S::Token>) -> Option<u64> {
        let [_, way] = self.environment.message_bits(id, self.links[id as usize].attempts());
        let least = client.arrived.map_or(at, |arrived| arrived + 1);
        let arrives = at.saturating_add(self.scenario.network.delay(way)).max(least);
        self.before_horizon(Some(arrives))?;
        let guards = self.processes[self.process_of(id)].all();
        match self.links[id as usize].connect(self.policy, at, &guards) {
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
                self.tally.gave_up(self.links[id as usize].attempts());
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
        let [answer, _] = self.environment.message_bits(id, self.links[id as usize].attempts());
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
        let guards = self.processes[self.process_of(id)].all();
        let next = self.links[id as usize].fail(self.policy, outcome, at, &guards);
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
