use core::time::Duration;

use stagger_core::{Outcome, Seed, machine::RetryState};

use super::{OccFigures, OccScenario};
use crate::engine::time::micros;
use crate::engine::{CLIENT_BITS, MAX_TIME, Simulation};
use crate::environment::distributions::normal;
use crate::scenario::client_policy::ClientPolicy;

pub(super) struct OccSimulation<'a> {
    scenario: &'a OccScenario,
    policy: ClientPolicy<'a>,
    messages: Seed,
    version: u32,
    pub(super) figures: OccFigures,
}

#[derive(Clone, Copy)]
pub(super) struct Client {
    state: RetryState,
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
        let window = Duration::from_nanos((2_000.0 * scenario.mean) as u64);
        let figures = OccFigures { clients: scenario.clients(), window, ..OccFigures::default() };
        Self { scenario, policy, messages: seed.for_call(2), version: 0, figures }
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
            self.figures.gave_up += 1;
            return None;
        };
        self.policy.on_attempt(id, &mut client.state, at);
        client.next = NextRequest::Read;
        Some(at + self.latency(id, client.state.attempt(), MessageKind::Read))
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
                let messages = [MessageKind::Version, MessageKind::Write];
                Some(at + messages.map(|kind| self.latency(id, attempt, kind)).into_iter().sum::<u64>())
            }
            NextRequest::Write(version) => {
                self.figures.calls += 1;
                let heard = at + self.latency(id, attempt, MessageKind::Answer);
                self.figures.time = self.figures.time.max(Duration::from_micros(heard));
                if version == self.version {
                    self.version += 1;
                    self.figures.written += 1;
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
        self.figures.written + self.figures.gave_up
    }
}
