use core::ops::RangeInclusive;
use core::time::Duration;

use stagger_core::{Policy, Seed};

use super::simulation::OutageSimulation;
use super::{OutageFigures, ProcessGuards};
use crate::engine::{CLIENT_BITS, MAX_TIME};
use crate::error::is_rate;
use crate::network::Network;
use crate::time::micros;
use crate::{Engine, Progress, ScenarioError, ScenarioProblem};

/// What comes, which server it meets, and what happens to that. Plain data; what is built makes sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutageScenario {
    pub(crate) rate: f64,
    pub(crate) capacity: f64,
    pub(crate) queue: u32,
    pub(crate) processes: u32,
    pub(crate) outage: OutageKind,
    /// The rest is in microseconds.
    pub(crate) one_way: u64,
    pub(crate) timeout: u64,
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) horizon: u64,
}

/// The settings of a [`OutageScenario`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct OutageScenarioBuilder {
    rate: f64,
    capacity: f64,
    queue: u32,
    processes: u32,
    outage: OutageKind,
    one_way: Duration,
    timeout: Duration,
    start: Duration,
    duration: Duration,
    horizon: Duration,
}

/// What an outage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutageKind {
    /// The server stands still: nothing is begun, what is underway waits, and the queue fills.
    #[default]
    Stall,
    /// Everyone is turned away at once; what is in the queue is done.
    Reject,
}

/// There is memory for so many jobs or processes.
const COUNTS: RangeInclusive<u32> = 1..=1 << CLIENT_BITS;

impl OutageScenario {
    pub(super) const MAX_REQUESTS: usize = 1 << CLIENT_BITS;

    /// So many requests a second, a billionth to a billion. The other settings are at their defaults.
    pub const fn builder(rate: f64) -> OutageScenarioBuilder {
        OutageScenarioBuilder {
            rate,
            capacity: 1_000.0,
            queue: 3_000,
            processes: 10,
            outage: OutageKind::Stall,
            one_way: Duration::from_millis(5),
            timeout: Duration::from_secs(1),
            start: Duration::from_secs(20),
            duration: Duration::from_secs(2),
            horizon: Duration::from_secs(120),
        }
    }

    /// How many client processes there are.
    #[must_use]
    pub const fn processes(&self) -> u32 {
        self.processes
    }

    /// What happens with this policy, and with these guards in each process: they are made with a seed of their own, for
    /// those that want chance. The other seed is that of the whole run.
    #[must_use]
    pub fn run(&self, policy: &Policy, guards: impl Fn(Seed) -> ProcessGuards, seed: Seed) -> OutageFigures {
        self.run_with_engine(Engine::Heap, policy, guards, seed)
    }

    /// [`run`](Self::run) on an engine of your choice; the figures are the same.
    #[must_use]
    pub fn run_with_engine(
        &self,
        engine: Engine,
        policy: &Policy,
        guards: impl Fn(Seed) -> ProcessGuards,
        seed: Seed,
    ) -> OutageFigures {
        // A watch that nobody else has is never cancelled.
        self.try_run(engine, policy, guards, seed, &Progress::new()).unwrap_or_default()
    }

    /// [`run`](Self::run), watched; `None` if it was cancelled before its end.
    #[must_use]
    pub fn run_with_progress(
        &self,
        policy: &Policy,
        guards: impl Fn(Seed) -> ProcessGuards,
        seed: Seed,
        progress: &Progress,
    ) -> Option<OutageFigures> {
        self.try_run(Engine::Heap, policy, guards, seed, progress)
    }

    fn try_run(
        &self,
        engine: Engine,
        policy: &Policy,
        guards: impl Fn(Seed) -> ProcessGuards,
        seed: Seed,
        progress: &Progress,
    ) -> Option<OutageFigures> {
        let own = seed.for_call(3);
        let processes = (0..self.processes).map(|process| guards(own.for_call(u64::from(process)))).collect();
        let mut simulation = OutageSimulation::new(self, policy, processes, seed);
        engine.run(&mut simulation, progress).ok()?;
        Some(simulation.figures())
    }
}

impl OutageScenarioBuilder {
    /// How many jobs the server does in a second. Default 1,000. Range: a billionth to a billion.
    pub const fn capacity(self, capacity: f64) -> Self {
        Self { capacity, ..self }
    }

    /// How many jobs there can be at the server, the one that is being done included. Default 3,000. Range: 1 to
    /// 67,108,864.
    pub const fn queue(self, queue: u32) -> Self {
        Self { queue, ..self }
    }

    /// How many client processes there are, each with guards of its own. Default 10. Range: 1 to 67,108,864.
    pub const fn processes(self, processes: u32) -> Self {
        Self { processes, ..self }
    }

    /// What the outage is, when it begins and how long it lasts. Default [`OutageKind::Stall`], 20 s and 2 s.
    pub const fn outage(self, outage: OutageKind, start: Duration, duration: Duration) -> Self {
        Self { outage, start, duration, ..self }
    }

    /// How long a message is underway, one way. Default 5 ms. Range: up to an hour.
    pub const fn one_way(self, one_way: Duration) -> Self {
        Self { one_way, ..self }
    }

    /// How long a client waits for the answer to one attempt. Default 1 s. Range: a round trip and more.
    pub const fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// When the simulation ends. Default two minutes. Range: as long as 67 million requests come, and up to 76 hours.
    pub const fn horizon(self, horizon: Duration) -> Self {
        Self { horizon, ..self }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Every [`ScenarioProblem`] at once.
    pub fn build(self) -> Result<OutageScenario, ScenarioError> {
        let (start, duration, horizon) = (micros(self.start), micros(self.duration), micros(self.horizon));
        // A tenth more than on average, which chance never reaches.
        let requests = 1.1 * self.rate * self.horizon.as_secs_f64();
        ScenarioError::check([
            (
                ScenarioProblem::Clients,
                !COUNTS.contains(&self.processes) || requests > OutageScenario::MAX_REQUESTS as f64,
            ),
            (ScenarioProblem::Rate, !is_rate(self.rate) || !is_rate(self.capacity)),
            (ScenarioProblem::Backlog, !COUNTS.contains(&self.queue)),
            (ScenarioProblem::Network, self.one_way > Network::MAX_DELAY),
            (
                ScenarioProblem::Timeout,
                self.timeout < self.one_way.saturating_mul(2) || micros(self.timeout) > MAX_TIME,
            ),
            (ScenarioProblem::BeyondHorizon, start.saturating_add(duration) > horizon),
            (ScenarioProblem::Horizon, horizon == 0 || horizon > MAX_TIME),
        ])?;
        let (one_way, timeout) = (micros(self.one_way), micros(self.timeout));
        let Self { rate, capacity, queue, processes, outage, .. } = self;
        Ok(OutageScenario { rate, capacity, queue, processes, outage, one_way, timeout, start, duration, horizon })
    }
}
