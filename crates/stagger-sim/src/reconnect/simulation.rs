use core::time::Duration;

use stagger_core::{Outcome, Policy, Seed, machine::RetryState};

use super::server::{Acceptor, Server};
use super::tally::Tally;
use super::{FirstAttempt, ReconnectFigures, ReconnectScenario};
use crate::engine::Simulation;
use crate::engine::time::micros;
use crate::environment::random::Environment;
use crate::scenario::client_policy::ClientPolicy;

pub(super) struct ReconnectSimulation<'a, S> {
    scenario: &'a ReconnectScenario,
    policy: ClientPolicy<'a>,
    environment: Environment,
    server: S,
    acceptor: Acceptor,
    tally: Tally,
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
        Self { scenario, policy, environment, server, acceptor, tally: Tally::default() }
    }

    pub(super) fn figures(self) -> ReconnectFigures {
        self.tally.figures(self.scenario, self.acceptor.peak_backlog())
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
            self.tally.gave_up(client.state.attempt());
            return None;
        };
        let at = now.saturating_add(after);
        let arrives = at.saturating_add(self.scenario.network.delay(way)).max(least);
        if arrives > self.scenario.horizon {
            self.tally.unfinished += 1;
            return None;
        }
        self.policy.on_attempt(id, &mut client.state, at);
        self.tally.total_wait += after;
        self.tally.in_flight.start(at);
        Some(arrives)
    }

    #[inline(never)]
    fn connected(&mut self, id: u32, client: &Client<S::Token>, heard: u64) {
        if heard > self.scenario.horizon {
            self.tally.unfinished += 1;
        } else {
            self.tally.connected(heard, heard - self.lost_at(id), client.state.attempt());
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
        let now = self.lost_at(id);
        let after = match self.scenario.first_attempt {
            FirstAttempt::AfterDelay => self.policy.on_disconnect(id, &mut client.state, now),
            FirstAttempt::Immediate => Some(self.policy.on_call(id, &mut client.state, now)),
        };
        let [_, way] = self.environment.message_bits(id, 0);
        self.send(id, client, now, after, way, now)
    }

    // Otherwise scenario and policy would be loaded again for each event.
    #[inline(always)]
    fn handle_event(&mut self, at: u64, id: u32, client: &mut Self::Client) -> Option<u64> {
        self.tally.arrivals.add(at);
        if id < self.scenario.sample {
            self.tally.sampled(id, at);
        }
        let [answer, next] = self.environment.message_bits(id, client.state.attempt());
        let back = self.scenario.network.delay(answer);
        let is_up = at >= self.scenario.up_at;
        match if is_up { self.server.arrive(&mut self.acceptor, at, &mut client.token) } else { Err(None) } {
            Ok(done) => {
                self.connected(id, client, done.saturating_add(back));
                None
            }
            Err(hint) => {
                let heard = at + back;
                self.tally.in_flight.end(heard);
                let outcome = match hint {
                    Some(_) => Outcome::throttled(hint),
                    None => Outcome::TRANSIENT,
                };
                let after = self.policy.on_failure(id, &mut client.state, outcome, heard);
                // The engine requires time to advance.
                self.send(id, client, heard, after, next, at + 1)
            }
        }
    }

    fn finished_clients(&self) -> u64 {
        self.tally.finished()
    }
}
