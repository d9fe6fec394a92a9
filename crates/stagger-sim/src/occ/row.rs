use core::time::Duration;

use stagger_core::{Outcome, Seed, machine::RetryState};

use super::{Figures, Scenario};
use crate::chance::normal;
use crate::client::Rule;
use crate::engine::{CLIENT_BITS, LAST, World};
use crate::time::micros;

/// The row, and everyone who wants to write it.
pub(super) struct Row<'a> {
    scenario: &'a Scenario,
    rule: Rule<'a>,
    messages: Seed,
    version: u32,
    calls: u64,
    written: u64,
    gave_up: u64,
    /// When the last client heard the end of it, in microseconds.
    last: u64,
}

/// What is kept of a client.
#[derive(Clone, Copy)]
pub(super) struct Client {
    state: RetryState,
    /// Where it is in its cycle.
    next: Message,
}

/// The message of a client that is to reach the server next.
#[derive(Clone, Copy)]
enum Message {
    Read,
    /// With the version that was read.
    Write(u32),
}

/// The messages of one attempt, in their order.
#[derive(Clone, Copy)]
enum Way {
    Read,
    Version,
    Write,
    Answer,
}

impl<'a> Row<'a> {
    pub(super) fn new(scenario: &'a Scenario, rule: Rule<'a>, seed: Seed) -> Self {
        Self { scenario, rule, messages: seed.for_call(2), version: 0, calls: 0, written: 0, gave_up: 0, last: 0 }
    }

    /// How long this message is underway, in microseconds.
    fn way(&self, id: u32, attempt: u32, way: Way) -> u64 {
        let number = (u64::from(attempt) << CLIENT_BITS) | u64::from(id);
        let deviate = normal(self.messages.draw(number << 2 | way as u64));
        let Scenario { mean, deviation, .. } = self.scenario;
        (deviate * deviation + mean).abs() as u64
    }

    /// The client sends its next attempt after this, from `now` on. Says when its first message arrives.
    fn send(&mut self, id: u32, client: &mut Client, now: u64, after: Option<Duration>) -> Option<u64> {
        let Some(at) = after.map(|after| now.saturating_add(micros(after))).filter(|&at| at < LAST / 2) else {
            self.gave_up += 1;
            return None;
        };
        self.rule.sends(id, &mut client.state, at);
        client.next = Message::Read;
        Some(at + self.way(id, client.state.attempt(), Way::Read))
    }

    pub(super) fn figures(&self) -> Figures {
        Figures {
            clients: self.scenario.clients(),
            calls: self.calls,
            written: self.written,
            gave_up: self.gave_up,
            time: Duration::from_micros(self.last),
            window: Duration::from_nanos((2_000.0 * self.scenario.mean) as u64),
        }
    }
}

impl World for Row<'_> {
    type Client = Client;

    fn shortest(&self) -> u64 {
        // A normal number can be anything.
        1
    }

    fn count(&self) -> u32 {
        self.scenario.clients
    }

    fn client(&self) -> Self::Client {
        Client { state: RetryState::new(), next: Message::Read }
    }

    fn begin(&mut self, id: u32, client: &mut Client) -> Option<u64> {
        let after = self.rule.called(id, &mut client.state, 0);
        self.send(id, client, 0, Some(after))
    }

    fn event(&mut self, at: u64, id: u32, client: &mut Client) -> Option<u64> {
        let attempt = client.state.attempt();
        let next = match client.next {
            Message::Read => {
                client.next = Message::Write(self.version);
                Some(at + self.way(id, attempt, Way::Version) + self.way(id, attempt, Way::Write))
            }
            Message::Write(version) => {
                self.calls += 1;
                let heard = at + self.way(id, attempt, Way::Answer);
                self.last = self.last.max(heard);
                if version == self.version {
                    self.version += 1;
                    self.written += 1;
                    return None;
                }
                let after = self.rule.failed(id, &mut client.state, Outcome::TRANSIENT, heard);
                self.send(id, client, heard, after)
            }
        };
        // The engine is promised a time that passes.
        next.map(|next| next.max(at + 1))
    }

    fn through(&self) -> u64 {
        self.written + self.gave_up
    }
}
