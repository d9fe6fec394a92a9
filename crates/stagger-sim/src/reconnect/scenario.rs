use core::time::Duration;

use stagger_core::{Admission, Hint, Policy, Seed};

use super::ReconnectFigures;
use super::server::{Acceptor, FixedHintServer, ReservationServer, Server, StaggeredServer};
use super::simulation::ReconnectSimulation;
use crate::client_policy::ClientPolicy;
use crate::engine::{CLIENT_BITS, MAX_TIME};
use crate::error::is_rate;
use crate::network::Network;
use crate::random::Environment;
use crate::time::micros;
use crate::{Engine, Progress, ScenarioError, ScenarioProblem};

/// A mass disconnect: how many lose their connection, and before which server. Plain data; what is built makes sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReconnectScenario {
    pub(super) clients: u32,
    rate: f64,
    backlog: u32,
    pub(super) network: Network,
    /// The rest is in microseconds.
    pub(crate) disconnect_window: u64,
    pub(crate) up_at: u64,
    pub(crate) horizon: u64,
    pub(crate) first_attempt: FirstAttempt,
    retry_after: RetryAfter,
    /// Clients of whom every attempt is kept.
    pub(super) sample: u32,
}

/// The settings of a [`ReconnectScenario`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct ReconnectScenarioBuilder {
    clients: u64,
    rate: f64,
    backlog: u32,
    one_way: (Duration, Duration),
    disconnect_window: Duration,
    down_for: Duration,
    horizon: Duration,
    first_attempt: FirstAttempt,
    retry_after: RetryAfter,
    sample: u32,
}

/// What a client does when its connection is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FirstAttempt {
    /// It waits for the policy's spread or, without one, for the schedule's first delay: what
    /// [`Reconnect`](stagger_core::Reconnect) does.
    #[default]
    AfterDelay,
    /// It makes an attempt at once, or after the policy's spread, and the schedule begins with the failure of that: what a
    /// plain call does, and several WebSocket clients.
    Immediate,
}

/// What the server tells those whom it refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryAfter {
    /// Nothing.
    #[default]
    None,
    /// "Not before": the same to everyone ([`Hint::Floor`]).
    Fixed(Duration),
    /// "Come then": the next free slot, reserved for this client alone ([`Hint::Slot`]). Slots are 2 % further apart than
    /// handshakes. Who comes without one is let in if there is room.
    Staggered,
    /// What [`Admission`] says, at the rate of the server and with its backlog as burst: appointments with tickets, and
    /// nobody overtakes those who have one.
    Reservations,
}

impl ReconnectScenario {
    /// So many clients, 1 to 67,108,864. The other settings are at their defaults.
    pub const fn builder(clients: u64) -> ReconnectScenarioBuilder {
        ReconnectScenarioBuilder {
            clients,
            rate: 1_000.0,
            backlog: 500,
            one_way: (Duration::from_millis(10), Duration::from_millis(40)),
            disconnect_window: Duration::from_millis(300),
            down_for: Duration::ZERO,
            horizon: Duration::from_secs(86_400),
            first_attempt: FirstAttempt::AfterDelay,
            retry_after: RetryAfter::None,
            sample: 0,
        }
    }

    /// How many clients there are.
    #[must_use]
    pub const fn clients(&self) -> u64 {
        self.clients as u64
    }

    /// How many the server lets in a second.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    pub(crate) const fn backlog(&self) -> u32 {
        self.backlog
    }

    pub(crate) const fn retry_after(&self) -> RetryAfter {
        self.retry_after
    }

    /// The shortest and the longest time that a message is underway.
    pub(crate) const fn one_way(&self) -> (Duration, Duration) {
        self.network.bounds()
    }

    /// What happens with this policy. The seed is that of the whole run; each client has its own.
    #[must_use]
    pub fn run(&self, policy: &Policy, seed: Seed) -> ReconnectFigures {
        self.run_with_engine(Engine::Calendar, policy, seed)
    }

    /// [`run`](Self::run) on an engine of your choice; the figures are the same.
    #[must_use]
    pub fn run_with_engine(&self, engine: Engine, policy: &Policy, seed: Seed) -> ReconnectFigures {
        // A watch that nobody else has is never cancelled.
        self.try_run(engine, policy, seed, &Progress::new()).unwrap_or_default()
    }

    /// [`run`](Self::run), watched; `None` if it was cancelled before its end.
    #[must_use]
    pub fn run_with_progress(&self, policy: &Policy, seed: Seed, progress: &Progress) -> Option<ReconnectFigures> {
        self.try_run(Engine::Calendar, policy, seed, progress)
    }

    fn try_run(&self, engine: Engine, policy: &Policy, seed: Seed, progress: &Progress) -> Option<ReconnectFigures> {
        let clients = ClientPolicy::new(policy, seed);
        let acceptor = Acceptor::new(self.rate, self.backlog);
        match (self.retry_after, self.admission()) {
            (RetryAfter::Reservations, Some(admission)) => {
                self.simulate(engine, clients, seed, ReservationServer { acceptor, admission }, progress)
            }
            (RetryAfter::Staggered, _) => {
                self.simulate(engine, clients, seed, StaggeredServer { acceptor, last: 0.0 }, progress)
            }
            (RetryAfter::Fixed(after), _) => self.simulate(
                engine,
                clients,
                seed,
                FixedHintServer { acceptor, hint: Some(Hint::Floor(after)) },
                progress,
            ),
            _ => self.simulate(engine, clients, seed, FixedHintServer { acceptor, hint: None }, progress),
        }
    }

    fn simulate(
        &self,
        engine: Engine,
        clients: ClientPolicy<'_>,
        seed: Seed,
        server: impl Server,
        progress: &Progress,
    ) -> Option<ReconnectFigures> {
        let mut simulation = ReconnectSimulation::new(self, clients, Environment::new(seed), server);
        engine.run(&mut simulation, progress).ok()?;
        Some(simulation.figures())
    }

    /// `None` where the rate is too small for appointments, which a scenario that has them was checked for.
    fn admission(&self) -> Option<Admission> {
        Admission::per_second(self.rate as u32).burst(self.backlog).build().ok()
    }
}

impl ReconnectScenarioBuilder {
    /// How many handshakes the server makes a second. Default 1,000. Range: a billionth to a billion.
    pub const fn rate(self, rate: f64) -> Self {
        Self { rate, ..self }
    }

    /// How many may wait for their handshake. Default 500. Range: 1 and up.
    pub const fn backlog(self, backlog: u32) -> Self {
        Self { backlog, ..self }
    }

    /// How long a message is underway, one way: uniform between these. Default 10 and 40 ms. Range: up to an
    /// hour. With less than a millisecond it runs noticeably slower.
    pub const fn one_way(self, least: Duration, most: Duration) -> Self {
        Self { one_way: (least, most), ..self }
    }

    /// Within what time the connections are lost. Default 300 ms.
    pub const fn disconnect_window(self, time: Duration) -> Self {
        Self { disconnect_window: time, ..self }
    }

    /// How long the server is down, from the beginning. Default 0: it is there again at once.
    pub const fn down_for(self, time: Duration) -> Self {
        Self { down_for: time, ..self }
    }

    /// When the simulation ends at the latest. Default a day. Range: above 0, up to 76 hours.
    pub const fn horizon(self, horizon: Duration) -> Self {
        Self { horizon, ..self }
    }

    /// What a client does when its connection is lost. Default [`FirstAttempt::AfterDelay`].
    pub const fn first_attempt(self, first_attempt: FirstAttempt) -> Self {
        Self { first_attempt, ..self }
    }

    /// What the server tells those whom it refuses. Default [`RetryAfter::None`].
    pub const fn retry_after(self, retry_after: RetryAfter) -> Self {
        Self { retry_after, ..self }
    }

    /// Of how many clients every attempt is kept, for a picture. Which of them does not matter: chance makes no difference
    /// between clients. Default 0.
    pub const fn sample(self, clients: u32) -> Self {
        Self { sample: clients, ..self }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Every [`ScenarioProblem`] at once.
    pub fn build(self) -> Result<ReconnectScenario, ScenarioError> {
        let (horizon, disconnect_window, up_at) =
            (micros(self.horizon), micros(self.disconnect_window), micros(self.down_for));
        let rate_fits = is_rate(self.rate);
        ScenarioError::check([
            (ScenarioProblem::Clients, self.clients == 0 || self.clients > 1 << CLIENT_BITS),
            (ScenarioProblem::Rate, !rate_fits),
            (ScenarioProblem::Backlog, self.backlog == 0),
            (ScenarioProblem::Network, self.one_way.0 > self.one_way.1 || self.one_way.1 > Network::MAX_DELAY),
            (ScenarioProblem::BeyondHorizon, disconnect_window.max(up_at) > horizon),
            (ScenarioProblem::Horizon, horizon == 0 || horizon > MAX_TIME),
            (
                ScenarioProblem::ReservationRate,
                rate_fits && self.rate < 1.0 && self.retry_after == RetryAfter::Reservations,
            ),
        ])?;
        Ok(ReconnectScenario {
            clients: self.clients as u32,
            rate: self.rate,
            backlog: self.backlog,
            network: Network::new(self.one_way.0, self.one_way.1),
            disconnect_window,
            up_at,
            horizon,
            first_attempt: self.first_attempt,
            retry_after: self.retry_after,
            sample: self.sample,
        })
    }
}
