use core::time::Duration;

use stagger_core::{Policy, Seed};

use super::OccFigures;
use super::simulation::OccSimulation;
use crate::client_policy::ClientPolicy;
use crate::engine::CLIENT_BITS;
use crate::network::Network;
use crate::{Engine, Progress, ScenarioError, ScenarioProblem};

/// How many write one row. Plain data; what is built makes sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OccScenario {
    pub(crate) clients: u32,
    /// Of a message's way, in microseconds.
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

/// The settings of a [`OccScenario`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct OccScenarioBuilder {
    clients: u64,
    mean: Duration,
    deviation: Duration,
}

impl OccScenario {
    /// So many clients, 1 to 67,108,864; they get in each other's way, so a thousand is many. The other settings are at
    /// their defaults.
    pub const fn builder(clients: u64) -> OccScenarioBuilder {
        OccScenarioBuilder { clients, mean: Duration::from_millis(10), deviation: Duration::from_millis(2) }
    }

    /// How many clients there are.
    #[must_use]
    pub const fn clients(&self) -> u64 {
        self.clients as u64
    }

    /// What happens with this policy. The seed is that of the whole run; each client has its own.
    #[must_use]
    pub fn run(&self, policy: &Policy, seed: Seed) -> OccFigures {
        self.run_with_engine(Engine::Heap, policy, seed)
    }

    /// [`run`](Self::run) on an engine of your choice; the figures are the same. With clients this few and times this short
    /// the heap is the faster one.
    #[must_use]
    pub fn run_with_engine(&self, engine: Engine, policy: &Policy, seed: Seed) -> OccFigures {
        // A watch that nobody else has is never cancelled.
        self.try_run(engine, policy, seed, &Progress::new()).unwrap_or_default()
    }

    /// [`run`](Self::run), watched; `None` if it was cancelled before its end.
    #[must_use]
    pub fn run_with_progress(&self, policy: &Policy, seed: Seed, progress: &Progress) -> Option<OccFigures> {
        self.try_run(Engine::Heap, policy, seed, progress)
    }

    fn try_run(&self, engine: Engine, policy: &Policy, seed: Seed, progress: &Progress) -> Option<OccFigures> {
        let mut simulation = OccSimulation::new(self, ClientPolicy::new(policy, seed), seed);
        engine.run(&mut simulation, progress).ok()?;
        Some(simulation.figures())
    }
}

impl OccScenarioBuilder {
    /// How long a message is underway, one way: normally distributed with this mean and standard deviation. Default 10 and
    /// 2 ms. Range: a mean of a microsecond and up, both up to an hour.
    pub const fn one_way(self, mean: Duration, deviation: Duration) -> Self {
        Self { mean, deviation, ..self }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Every [`ScenarioProblem`] at once.
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
