use core::time::Duration;

use stagger_core::{Outcome, Seed, machine::RetryState};

use super::{OccFigures, OccScenario};
use crate::client_policy::ClientPolicy;
use crate::distributions::normal;
use crate::engine::{CLIENT_BITS, MAX_TIME, Simulation};
use crate::time::micros;

/// The simulation of a row and the clients that write it.
pub(super) struct OccSimulation<'a> {
    scenario: &'a OccScenario,
    policy: ClientPolicy<'a>,
    messages: Seed,
    version: u32,
    calls: u64,
    written: u64,
    gave_up: u64,
    /// Time at which the last client received its answer, in microseconds.
    last: u64,
}

/// The state of a client.
#[derive(Clone, Copy)]
pub(super) struct Client {
    state: RetryState,
    /// The request that reaches the server next.
    next: NextRequest,
}

/// The request of a client that reaches the server next.
#[derive(Clone, Copy)]
enum NextRequest {
    Read,
    /// A write with the version that was read.
    Write(u32),
}

/// The messages of one attempt, in order.
#[derive(Clone, Copy)]
enum MessageKind {
    Read,
    Version,
    Write,
    Answer,
}

impl<'a> OccSimulation<'a> {
    pub(super) fn new(scenario: &'a OccScenario, policy: ClientPolicy<'a>, seed: Seed) -> Self {
        Self { scenario, policy, messages: seed.for_call(2), version: 0, calls: 0, written: 0, gave_up: 0, last: 0 }
    }

    /// Returns the delay of this message, in microseconds.
    fn latency(&self, id: u32, attempt: u32, latency: MessageKind) -> u64 {
        let number = (u64::from(attempt) << CLIENT_BITS) | u64::from(id);
        let deviate = normal(self.messages.draw(number << 2 | latency as u64));
        let OccScenario { mean, deviation, .. } = self.scenario;
        (deviate * deviation + mean).abs() as u64
    }

    /// Sends the client's next attempt after the delay `after`, starting at `now`. Returns the arrival time of its
    /// first message; `None` if the client gives up.
    fn send(&mut self, id: u32, client: &mut Client, now: u64, after: Option<Duration>) -> Option<u64> {
        let Some(at) = after.map(|after| now.saturating_add(micros(after))).filter(|&at| at < MAX_TIME / 2) else {
            self.gave_up += 1;
            return None;
        };
        self.policy.on_attempt(id, &mut client.state, at);
        client.next = NextRequest::Read;
        Some(at + self.latency(id, client.state.attempt(), MessageKind::Read))
    }

    pub(super) fn figures(&self) -> OccFigures {
        OccFigures {
            clients: self.scenario.clients(),
            calls: self.calls,
            written: self.written,
            gave_up: self.gave_up,
            time: Duration::from_micros(self.last),
            window: Duration::from_nanos((2_000.0 * self.scenario.mean) as u64),
        }
    }
}

impl Simulation for OccSimulation<'_> {
    type Client = Client;

    fn client_count(&self) -> u32 {
        self.scenario.clients
    }

    fn new_client(&self) -> Self::Client {
        Client { state: RetryState::new(), next: NextRequest::Read }
    }

    fn first_event(&mut self, id: u32, client: &mut Client) -> Option<u64> {
        let after = self.policy.on_call(id, &mut client.state, 0);
        self.send(id, client, 0, Some(after))
    }

    fn handle_event(&mut self, at: u64, id: u32, client: &mut Client) -> Option<u64> {
        let attempt = client.state.attempt();
        let next = match client.next {
            NextRequest::Read => {
                client.next = NextRequest::Write(self.version);
                Some(
                    at + self.latency(id, attempt, MessageKind::Version)
                        + self.latency(id, attempt, MessageKind::Write),
                )
            }
            NextRequest::Write(version) => {
                self.calls += 1;
                let heard = at + self.latency(id, attempt, MessageKind::Answer);
                self.last = self.last.max(heard);
                if version == self.version {
                    self.version += 1;
                    self.written += 1;
                    return None;
                }
                let after = self.policy.on_failure(id, &mut client.state, Outcome::TRANSIENT, heard);
                self.send(id, client, heard, after)
            }
        };
        // The engine requires time to advance.
        next.map(|next| next.max(at + 1))
    }

    fn finished_clients(&self) -> u64 {
        self.written + self.gave_up
    }
}
