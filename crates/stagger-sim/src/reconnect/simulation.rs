//! Mass disconnects whose clients have no guards, up to 67 million of them.

use core::time::Duration;

use stagger_core::machine::RetryState;
use stagger_core::{Outcome, Policy, Seed};

use super::crash_loop::{Crashes, PendingEvent};
use super::server::{Acceptor, Server};
use super::tally::Tally;
use super::{FirstAttempt, ReconnectFigures, ReconnectScenario};
use crate::client_policy::ClientPolicy;
use crate::engine::{Simulation, micros};
use crate::environment::Environment;

/// The simulation of a mass disconnect: all clients and one server.
pub(super) struct ReconnectSimulation<'a, S: Server> {
    scenario: &'a ReconnectScenario,
    policy: ClientPolicy<'a>,
    environment: Environment,
    server: S,
    acceptor: Acceptor,
    tally: Tally,
    crashes: Option<Box<Crashes<Client<S::Token>>>>,
}

/// The state of a client: 24 bytes, and the token that the server assigned to it.
#[derive(Clone, Copy)]
pub(super) struct Client<N> {
    state: RetryState,
    token: N,
}

impl<'a, S: Server> ReconnectSimulation<'a, S> {
    pub(super) fn new(scenario: &'a ReconnectScenario, policy: &'a Policy, seed: Seed, server: S) -> Self {
        let (policy, environment) = (ClientPolicy::new(policy, seed), Environment::new(seed));
        let acceptor = Acceptor::new(scenario.rate(), scenario.backlog);
        let fresh = Client { state: RetryState::new(), token: S::Token::default() };
        let crashes = Crashes::new(scenario, fresh).map(Box::new);
        Self { scenario, policy, environment, server, acceptor, tally: Tally::default(), crashes }
    }

    pub(super) fn figures(self) -> ReconnectFigures {
        let mut figures = self.tally.figures(self.scenario, self.acceptor.peak_backlog());
        if let Some(crashes) = &self.crashes {
            figures.crashes = u64::from(crashes.count);
        }
        figures
    }

    #[inline]
    fn lost_at(&self, id: u32) -> u64 {
        self.environment.disconnect_time(id, self.scenario.disconnect_window)
    }

    /// Sends the client's next attempt after the delay `after`, starting at `now`. Returns its arrival time, which is
    /// at least `least`; `None` if the client gives up or the attempt would arrive after the horizon.
    #[inline(always)]
    fn send(
        &mut self,
        id: u32,
        client: &mut Client<S::Token>,
        now: u64,
        after: Option<Duration>,
        way: u32,
        least: u64,
    ) -> Option<u64> {
        let Some(after) = after.map(micros) else {
            self.tally.gave_up(self.attempts(id, client));
            return None;
        };
        let at = now.saturating_add(after);
        let arrives = at.saturating_add(self.scenario.network.delay(way)).max(least);
        if arrives > self.scenario.horizon {
            self.tally.unfinished += 1;
            return None;
        }
        self.policy.on_attempt(id, &mut client.state, at);
        if let Some(crashes) = &mut self.crashes {
            crashes.clients[id as usize].last_wait = after;
        }
        self.tally.total_wait += after;
        self.tally.in_flight.start(at);
        Some(arrives)
    }

    #[inline(never)]
    fn connected(&mut self, id: u32, client: &Client<S::Token>, heard: u64) {
        if heard > self.scenario.horizon {
            self.tally.unfinished += 1;
        } else {
            self.tally.connected(heard, heard - self.lost_at(id), self.attempts(id, client));
            if id < self.scenario.sample {
                self.tally.sample.connects.record(id, heard);
            }
        }
    }

    /// Returns the number of attempts of a client, with those before earlier crashes of the server.
    #[inline(always)]
    fn attempts(&self, id: u32, client: &Client<S::Token>) -> u32 {
        match &self.crashes {
            Some(crashes) => client.state.attempt() + crashes.clients[id as usize].earlier_attempts,
            None => client.state.attempt(),
        }
    }
}

impl<S: Server> Simulation for ReconnectSimulation<'_, S> {
    type Client = Client<S::Token>;

    fn client_count(&self) -> u32 {
        self.scenario.clients as u32
    }

    fn new_client(&self) -> Self::Client {
        Client { state: RetryState::new(), token: S::Token::default() }
    }

    fn first_event(&mut self, id: u32, client: &mut Self::Client) -> Option<u64> {
        if self.crashes.is_some() {
            return self.first_event_of_run(id, client);
        }
        self.first_attempt(id, client)
    }

    // Otherwise scenario and policy would be loaded again for each event.
    #[inline(always)]
    fn handle_event(&mut self, at: u64, id: u32, client: &mut Self::Client) -> Option<u64> {
        if self.crashes.is_some() {
            return self.handle_with_crashes(at, id, client);
        }
        match self.arrive(at, id, client, client.state.attempt(), self.scenario.up_at) {
            Arrival::Accepted { heard, .. } => {
                self.connected(id, client, heard);
                None
            }
            Arrival::Rejected(next) => next,
        }
    }

    fn finished_clients(&self) -> u64 {
        self.tally.finished()
    }
}

/// What came of an attempt.
enum Arrival {
    /// It was accepted: the handshake is complete at `done`, and the client hears of it at `heard`.
    Accepted { done: u64, heard: u64 },
    /// It was rejected. The time of the next attempt, if there is one.
    Rejected(Option<u64>),
}

impl<S: Server> ReconnectSimulation<'_, S> {
    /// Sends the first attempt of a client.
    #[inline(always)]
    fn first_attempt(&mut self, id: u32, client: &mut Client<S::Token>) -> Option<u64> {
        let now = self.lost_at(id);
        if id < self.scenario.sample {
            self.tally.sample.losses.record(id, now);
        }
        let after = match self.scenario.first_attempt {
            FirstAttempt::AfterDelay => self.policy.on_disconnect(id, &mut client.state, now),
            FirstAttempt::Immediate => Some(self.policy.on_call(id, &mut client.state, now)),
        };
        let [_, way] = self.environment.message_bits(id, 0);
        self.send(id, client, now, after, way, now)
    }

    /// Handles the arrival of an attempt, the client's `nth`, at a server that is up from `up_at` on.
    #[inline(always)]
    fn arrive(&mut self, at: u64, id: u32, client: &mut Client<S::Token>, nth: u32, up_at: u64) -> Arrival {
        self.tally.arrivals.add(at);
        if id < self.scenario.sample {
            self.tally.sample.arrivals.record(id, at);
        }
        let [answer, next] = self.environment.message_bits(id, nth);
        let back = self.scenario.network.delay(answer);
        let is_up = at >= up_at;
        match if is_up { self.server.arrive(&mut self.acceptor, at, &mut client.token) } else { Err(None) } {
            Ok(done) => Arrival::Accepted { done, heard: done.saturating_add(back) },
            Err(hint) => {
                let heard = at + back;
                self.tally.in_flight.end(heard);
                let outcome = match hint {
                    Some(_) => Outcome::throttled(hint),
                    None => Outcome::TRANSIENT,
                };
                let after = self.policy.on_failure(id, &mut client.state, outcome, heard);
                // The engine requires time to advance.
                Arrival::Rejected(self.send(id, client, heard, after, next, at + 1))
            }
        }
    }
}

impl<S: Server> ReconnectSimulation<'_, S> {
    /// Prepares the next run of the engine if the server has crashed in the last one, and returns whether it has.
    /// Otherwise the connections that are open stay open, and the run is complete.
    pub(super) fn restart(&mut self) -> bool {
        let Some(crashes) = &mut self.crashes else {
            return false;
        };
        if core::mem::take(&mut crashes.is_ending) {
            // Reservations outlive the crash: they belong to what is in front of the server.
            self.acceptor.restart();
            if self.scenario.first_attempt == FirstAttempt::Immediate {
                // Every such call begins anew, and would repeat the draws of the last.
                self.policy = self.policy.reseeded(crashes.count);
            }
            return true;
        }
        for (id, between) in (0..).zip(crashes.clients.clone()) {
            if let PendingEvent::Open { heard, .. } = between.next {
                self.connected(id, &between.client, heard);
            }
        }
        false
    }

    /// Returns the first event of a client in a run of the engine: in the first run its first attempt, later the event
    /// that the crash put aside, or what follows from the loss of its connection.
    fn first_event_of_run(&mut self, id: u32, client: &mut Client<S::Token>) -> Option<u64> {
        let crashes = self.crashes.as_ref()?;
        let between = crashes.clients[id as usize];
        let next = match (crashes.crashed_at, between.next) {
            (None, _) => self.first_attempt(id, client),
            (Some(crash), next) => {
                *client = between.client;
                match next {
                    PendingEvent::Nothing => None,
                    PendingEvent::Arrives(at) => Some(at),
                    // The handshake was not complete.
                    PendingEvent::Open { done, .. } if done > crash => self.fail_pending(id, client, crash),
                    PendingEvent::Open { heard, .. } => self.lose(id, client, heard, crash),
                }
            }
        };
        self.put_aside(id, client, PendingEvent::arrival(next));
        next
    }

    /// Handles the arrival of an attempt at a server that may crash under it.
    #[inline(never)]
    fn handle_with_crashes(&mut self, at: u64, id: u32, client: &mut Client<S::Token>) -> Option<u64> {
        let crashes = self.crashes.as_mut()?;
        let up_at = crashes.up_at;
        if crashes.is_ending || at >= up_at && crashes.crashes_under(at) {
            self.put_aside(id, client, PendingEvent::Arrives(at));
            return None;
        }
        let nth = self.attempts(id, client);
        let (next, event) = match self.arrive(at, id, client, nth, up_at) {
            Arrival::Accepted { done, heard } => (PendingEvent::Open { done, heard }, None),
            Arrival::Rejected(event) => (PendingEvent::arrival(event), event),
        };
        self.put_aside(id, client, next);
        event
    }

    /// Fails an attempt whose handshake was pending at the crash.
    fn fail_pending(&mut self, id: u32, client: &mut Client<S::Token>, crash: u64) -> Option<u64> {
        let [answer, next] = self.environment.message_bits(id, self.attempts(id, client));
        let heard = crash + self.scenario.network.delay(answer);
        self.tally.in_flight.end(heard);
        let after = self.policy.on_failure(id, &mut client.state, Outcome::TRANSIENT, heard);
        self.send(id, client, heard, after, next, heard)
    }

    /// Loses a connection that the client heard of at `heard`.
    fn lose(&mut self, id: u32, client: &mut Client<S::Token>, heard: u64, crash: u64) -> Option<u64> {
        self.tally.in_flight.end(heard);
        let crashes = self.crashes.as_mut()?;
        let between = &mut crashes.clients[id as usize];
        let window = self.scenario.disconnect_window;
        let lost = heard.max(crash + self.environment.repeated_disconnect_time(id, crashes.count, window));
        if id < self.scenario.sample {
            self.tally.sample.connects.record(id, heard);
            self.tally.sample.losses.record(id, lost);
        }
        let (attempts, last_wait) = (client.state.attempt(), Duration::from_micros(between.last_wait));
        // The bits for the attempt after the one that succeeded: not used yet.
        let [_, way] = self.environment.message_bits(id, attempts + between.earlier_attempts);
        let after = match self.scenario.first_attempt {
            FirstAttempt::AfterDelay => {
                let lived = Duration::from_micros(lost - heard);
                self.policy.on_loss(id, &mut client.state, Outcome::TRANSIENT, [lived, last_wait], lost)
            }
            FirstAttempt::Immediate => Some(self.policy.on_call(id, &mut client.state, lost)),
        };
        if client.state.attempt() == 0 {
            between.earlier_attempts += attempts;
        }
        self.send(id, client, lost, after, way, lost)
    }

    fn put_aside(&mut self, id: u32, client: &Client<S::Token>, next: PendingEvent) {
        if let Some(crashes) = &mut self.crashes {
            let between = &mut crashes.clients[id as usize];
            (between.client, between.next) = (*client, next);
        }
    }
}
