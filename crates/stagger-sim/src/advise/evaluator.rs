use core::time::Duration;

use stagger_core::{Policy, Seed};

use super::pareto_front::{Candidate, Prediction};
use crate::engine::progress::Progress;
use crate::engine::sweep::Sweep;
use crate::fluid;
use crate::reconnect::{ReconnectFigures, ReconnectScenario};
use crate::scenario::error::ScenarioError;

/// Evaluates policies for a fleet, with no more clients than needed to distinguish policies.
///
/// A large fleet is represented by a smaller one in proportion. Random variation raises the peak of the smaller fleet,
/// equally for all policies: by about 15 % if its server accepts 800 clients per second.
pub(super) struct Evaluator {
    /// For the reported figures.
    full: ReconnectScenario,
    /// For screening policies that the fluid model does not support.
    coarse: ReconnectScenario,
    /// Ratio of all clients to simulated clients.
    scale: f64,
    /// Whether the fluid model is faster than a simulation.
    use_fluid: bool,
    /// Lower bound on the time until all clients are back.
    pub(super) min_recovery_time: Duration,
    seed: Seed,
}

/// Maximum number of simulated clients, for reported figures and for screening.
const FULL_CLIENTS: u64 = 500_000;
const COARSE_CLIENTS: u64 = 50_000;

/// Recovery time above which the fluid model has more steps than a simulation has events.
const MAX_FLUID_TIME: Duration = Duration::from_secs(600);

/// Number of clients to simulate per policy over all runs, and the range of the number of runs.
const TOTAL_CLIENTS: u64 = 150_000;
const RUNS: core::ops::RangeInclusive<u64> = 1..=40;

impl Evaluator {
    pub(super) fn new(clients: u64, capacity: f64, outage: Duration, seed: Seed) -> Result<Self, ScenarioError> {
        let window = Duration::try_from_secs_f64(clients as f64 / capacity).unwrap_or(Duration::MAX);
        let min_recovery_time = window.saturating_add(outage);
        let full = ReconnectScenario::of_fleet(clients, capacity, outage, FULL_CLIENTS)?;
        Ok(Self {
            full,
            coarse: ReconnectScenario::of_fleet(clients, capacity, outage, COARSE_CLIENTS)?,
            scale: clients as f64 / full.clients() as f64,
            use_fluid: min_recovery_time <= MAX_FLUID_TIME,
            min_recovery_time,
            seed,
        })
    }

    pub(super) const fn simulated(&self) -> u64 {
        self.full.clients()
    }

    pub(super) fn runs(&self) -> u32 {
        (TOTAL_CLIENTS / self.simulated()).clamp(*RUNS.start(), *RUNS.end()) as u32
    }

    /// Estimates policies quickly, with the fluid model where it applies.
    pub(super) fn screen(&self, policies: &[Policy], progress: &Progress) -> Vec<Candidate> {
        let clients = self.scale * self.simulated() as f64;
        let one = |policy: &Policy, seed: Seed, progress: &Progress| {
            if progress.is_cancelled() {
                return None;
            }
            match self.use_fluid.then(|| fluid::run(&self.full, policy)) {
                Some(Ok(figures)) => Some(Prediction {
                    peak_second: figures.peak_second() * clients,
                    recovery: figures.t99,
                    attempts_per_client: figures.attempts_per_client,
                    recovered_ratio: figures.connected,
                }),
                _ => {
                    let figures = self.coarse.run_with_progress(policy, seed, progress)?;
                    Some(mean(&[figures], clients / self.coarse.clients() as f64))
                }
            }
        };
        let screened = Sweep::new().run(policies, &[self.seed.for_call(0)], progress, one);
        let predicted = screened.into_iter().map(|runs| runs.into_iter().flatten().next());
        policies.iter().zip(predicted).filter_map(|(&policy, it)| Some(Candidate { policy, predicted: it? })).collect()
    }

    /// Simulates policies client by client, with seeds not used for screening. Also returns the maximum number of
    /// attempts of a client.
    pub(super) fn simulate(&self, policies: &[Policy], progress: &Progress) -> Vec<(Candidate, u64)> {
        let seeds: Vec<_> = (1..=u64::from(self.runs())).map(|run| self.seed.for_call(run)).collect();
        let each = Sweep::new().run(policies, &seeds, progress, |policy, seed, progress| {
            self.full.run_with_progress(policy, seed, progress)
        });
        let verified = policies.iter().zip(each).filter_map(|(&policy, runs)| {
            let runs = runs.into_iter().collect::<Option<Vec<ReconnectFigures>>>()?;
            let most = runs.iter().map(|run| run.attempts_max).max().unwrap_or(0);
            Some((Candidate { policy, predicted: mean(&runs, self.scale) }, most))
        });
        verified.collect()
    }
}

/// Returns the means over runs; a time that was not reached in one run is `None`.
fn mean(runs: &[ReconnectFigures], scale: f64) -> Prediction {
    let count = runs.len() as f64;
    let mean = |of: &dyn Fn(&ReconnectFigures) -> f64| runs.iter().map(of).sum::<f64>() / count;
    let times: Option<Duration> = runs.iter().map(|run| run.t99).sum();
    Prediction {
        peak_second: mean(&|run| run.peak_second() as f64) * scale,
        recovery: times.map(|sum| sum / u32::try_from(runs.len()).unwrap_or(u32::MAX)),
        attempts_per_client: mean(&|run| run.attempts_per_client()),
        recovered_ratio: mean(&|run| run.connected as f64 / run.clients as f64),
    }
}
