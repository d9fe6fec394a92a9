use core::time::Duration;

use stagger_core::{Outcome, machine::RetryState};

use super::server::{Answer, Server};
use super::tally::Tally;
use super::{Figures, First, Scenario};
use crate::client::Rule;
use crate::engine::World;
use crate::random;
use crate::time::micros;

/// All clients before one server.
pub(super) struct Herd<'a, S> {
    scenario: &'a Scenario,
    rule: Rule<'a>,
    chance: random::World,
    server: S,
    tally: Tally,
}

/// What is kept of a client: 24 bytes, and what the server gave it.
#[derive(Clone, Copy)]
pub(super) struct Client<N> {
    state: RetryState,
    note: N,
}

impl<'a, S: Server> Herd<'a, S> {
    pub(super) fn new(scenario: &'a Scenario, rule: Rule<'a>, chance: random::World, server: S) -> Self {
        Self { scenario, rule, chance, server, tally: Tally::default() }
    }

    pub(super) fn figures(self) -> Figures {
        self.tally.figures(self.scenario, self.server.peak_backlog())
    }

    /// When this client lost its connection.
    #[inline]
    fn lost_at(&self, id: u32) -> u64 {
        self.chance.hit(id, self.scenario.hits_within)
    }

    /// The client sends its next attempt after this, from `now` on. Says when it arrives, which is not before `least`.
    #[inline(always)]
    fn send(
        &mut self,
        id: u32,
        client: &mut Client<S::Note>,
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
        let arrives = at.saturating_add(self.scenario.network.way(way)).max(least);
        if arrives > self.scenario.horizon {
            self.tally.beyond += 1;
            return None;
        }
        self.rule.sends(id, &mut client.state, at);
        self.tally.waited += after;
        self.tally.in_flight.begins(at);
        Some(arrives)
    }

    #[inline(never)]
    fn connected(&mut self, id: u32, client: &Client<S::Note>, heard: u64) {
        if heard > self.scenario.horizon {
            self.tally.beyond += 1;
        } else {
            self.tally.connected(heard, heard - self.lost_at(id), client.state.attempt());
        }
    }
}

impl<S: Server> World for Herd<'_, S> {
    type Client = Client<S::Note>;

    fn shortest(&self) -> u64 {
        self.scenario.network.shortest_round().max(1)
    }

    fn count(&self) -> u32 {
        self.scenario.clients
    }

    fn client(&self) -> Self::Client {
        Client { state: RetryState::new(), note: S::Note::default() }
    }

    fn begin(&mut self, id: u32, client: &mut Self::Client) -> Option<u64> {
        let now = self.lost_at(id);
        let after = match self.scenario.first {
            First::AfterDelay => self.rule.lost(id, &mut client.state, now),
            First::AtOnce => Some(self.rule.called(id, &mut client.state, now)),
        };
        let way = self.chance.ways(id, 0).next;
        self.send(id, client, now, after, way, now)
    }

    // Always, or what the scenario and the policy say would be read anew for each event.
    #[inline(always)]
    fn event(&mut self, at: u64, id: u32, client: &mut Self::Client) -> Option<u64> {
        self.tally.arrivals.add(at);
        if id < self.scenario.sample {
            self.tally.sampled(id, at);
        }
        let ways = self.chance.ways(id, client.state.attempt());
        let back = self.scenario.network.way(ways.answer);
        let answer =
            if at < self.scenario.up_at { Answer::Refused(None) } else { self.server.arrive(at, &mut client.note) };
        match answer {
            Answer::Accepted(done) => {
                self.connected(id, client, done.saturating_add(back));
                None
            }
            Answer::Refused(hint) => {
                let heard = at + back;
                self.tally.in_flight.ends(heard);
                let outcome = match hint {
                    Some(_) => Outcome::throttled(hint),
                    None => Outcome::TRANSIENT,
                };
                let after = self.rule.failed(id, &mut client.state, outcome, heard);
                // The engine is promised a time that passes.
                self.send(id, client, heard, after, ways.next, at + 1)
            }
        }
    }

    fn through(&self) -> u64 {
        self.tally.through()
    }
}
