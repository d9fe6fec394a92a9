use core::time::Duration;

use stagger_core::{Policy, Seed};

use super::OccFigures;
use super::simulation::OccSimulation;
use crate::engine::progress::Progress;
use crate::engine::{CLIENT_BITS, Engine};
use crate::environment::network::Network;
use crate::scenario::client_policy::ClientPolicy;
use crate::scenario::error::{ScenarioError, ScenarioProblem};

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
