//! Optimistic concurrency control: all clients write one row, and of those that read the same version, one succeeds.
//!
//! # The model
//!
//! The model of the AWS article's simulator. The server has no capacity limit and no queue: an attempt fails only if
//! another client was faster.
//!
//! - All clients start at once. Each has one write to make, and stops when it has succeeded.
//! - A client reads the version of the row and, when it has the answer, writes with that version. The write succeeds if
//!   the row still has this version, and increments it. When the client learns that the write failed, it asks its
//!   policy and reads again.
//! - The delay of each message is normally distributed; a negative value is replaced by its absolute value.
//!
//! Source: M. Brooker, aws-samples/aws-arch-backoff-simulator, 2015. Differs from it in: time has a resolution of a
//! microsecond, and the strategies are policies. The strategies of the article are `exponential base=10ms cap=2s` with
//! jitter `none`, `full` and `equal` (it counts the first failure as 1, so its first window is 10 ms and not the
//! configured 5 ms), the profile `aws-blog` for decorrelated jitter, and `zero`.
//!
//! # Limits
//!
//! With W the time of two messages, at most one write succeeds per W, so all writes take at least W per client, and one
//! attempt per client. Clients that do not know of each other cannot reach both limits: attempts that arrive at random
//! with a rate of ρ per W lead to `c = 1 + ρ` attempts and `τ = (1 + ρ) / ρ` times W per write, so `(c − 1)(τ − 1)` is
//! at best 1. [`OccFigures::to_limit`] returns how far a policy is from that limit.

use core::time::Duration;

use stagger_core::machine::RetryState;
use stagger_core::{Outcome, Policy, Seed};

use crate::client_policy::ClientPolicy;
use crate::distributions::normal;
use crate::engine::{CLIENT_BITS, Engine, MAX_TIME, Progress, Simulation, micros};
use crate::environment::Network;
use crate::scenario::{ScenarioError, ScenarioProblem};

/// Clients that write one row concurrently. Plain data; valid once built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OccScenario {
    pub(crate) clients: u32,
    /// Of the message delay, in microseconds.
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

/// Builds an [`OccScenario`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct OccScenarioBuilder {
    clients: u64,
    mean: Duration,
    deviation: Duration,
}

impl OccScenario {
    /// Starts a scenario with this number of clients, 1 to 67,108,864, and the defaults of all other settings. Clients
    /// conflict with each other, so a thousand is many.
    pub const fn builder(clients: u64) -> OccScenarioBuilder {
        OccScenarioBuilder { clients, mean: Duration::from_millis(10), deviation: Duration::from_millis(2) }
    }

    /// Returns the number of clients.
    #[must_use]
    pub const fn clients(&self) -> u64 {
        self.clients as u64
    }

    /// Runs the scenario with this policy. Each client derives its own seed from `seed`.
    #[must_use]
    pub fn run(&self, policy: &Policy, seed: Seed) -> OccFigures {
        // This progress is not shared, so it is never cancelled.
        self.run_with_progress(policy, seed, &Progress::new()).unwrap_or_default()
    }

    /// Runs the scenario like [`run`](Self::run) and reports its progress; returns `None` if it was cancelled.
    #[must_use]
    pub fn run_with_progress(&self, policy: &Policy, seed: Seed, progress: &Progress) -> Option<OccFigures> {
        let mut simulation = OccSimulation::new(self, ClientPolicy::new(policy, seed), seed);
        // A normally distributed delay has no minimum.
        Engine::Heap.run(&mut simulation, progress).ok()?;
        Some(simulation.figures)
    }
}

impl OccScenarioBuilder {
    /// Sets the one-way delay of messages: normally distributed with this mean and standard deviation. Default 10 and 2
    /// ms. Range: a mean of at least a microsecond, both up to an hour.
    pub const fn one_way(self, mean: Duration, deviation: Duration) -> Self {
        Self { mean, deviation, ..self }
    }

    /// Builds the scenario.
    ///
    /// # Errors
    /// Returns all [`ScenarioProblem`]s at once.
    pub fn build(self) -> Result<OccScenario, ScenarioError> {
        ScenarioError::check([
            (ScenarioProblem::Clients, self.clients == 0 || self.clients > 1 << CLIENT_BITS),
            (ScenarioProblem::Network, self.mean.max(self.deviation) > Network::MAX_DELAY),
            (ScenarioProblem::MessageDelay, self.mean < Duration::from_micros(1)),
        ])?;
        Ok(OccScenario {
            clients: self.clients as u32,
            mean: self.mean.as_secs_f64() * 1e6,
            deviation: self.deviation.as_secs_f64() * 1e6,
        })
    }
}

/// The results of an optimistic concurrency scenario with one policy and one seed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OccFigures {
    /// Number of clients.
    pub clients: u64,
    /// Number of writes that arrived at the server, successful or not: attempts.
    pub calls: u64,
    /// Number of clients whose write succeeded.
    pub written: u64,
    /// Number of clients that gave up, or would have continued for more than 38 hours.
    pub gave_up: u64,
    /// Time at which the last answer to a write was received.
    pub time: Duration,
    /// W: the mean time of two messages.
    pub window: Duration,
}

impl OccFigures {
    /// Returns c, the number of attempts per client; the minimum is 1.
    #[must_use]
    pub fn calls_per_client(&self) -> f64 {
        self.calls as f64 / self.clients as f64
    }

    /// Returns τ, the time per client as a multiple of W; the minimum is about 1.
    #[must_use]
    pub fn time_per_client(&self) -> f64 {
        self.time.as_secs_f64() / (self.window.as_secs_f64() * self.clients as f64)
    }

    /// Returns `(c − 1)(τ − 1)`; the minimum is 1 for clients that do not know of each other.
    #[must_use]
    pub fn to_limit(&self) -> f64 {
        (self.calls_per_client() - 1.0) * (self.time_per_client() - 1.0)
    }

    /// Returns the number of calls relative to the optimum for the same time: `c / (τ / (τ − 1))`. `None` if the time
    /// per client is about W or less, because more attempts could not reduce it.
    #[must_use]
    pub fn calls_to_limit(&self) -> Option<f64> {
        let time = self.time_per_client();
        if time > 1.05 { Some(self.calls_per_client() * (time - 1.0) / time) } else { None }
    }
}

struct OccSimulation<'a> {
    scenario: &'a OccScenario,
    policy: ClientPolicy<'a>,
    messages: Seed,
    version: u32,
    figures: OccFigures,
}

#[derive(Clone, Copy)]
struct Client {
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
    fn new(scenario: &'a OccScenario, policy: ClientPolicy<'a>, seed: Seed) -> Self {
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
