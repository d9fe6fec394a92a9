use core::time::Duration;

use stagger_core::{Policy, Seed};

use super::pareto_front::{Candidate, Prediction};
use crate::reconnect::{ReconnectFigures, ReconnectScenario};
use crate::{Progress, ScenarioError, Sweep, TimeSeries, fluid};

/// Where policies are tried: the fleet before its server, with no more clients than it takes to tell policies apart.
///
/// Only clients by rate and backlog by rate matter for the figures, so those of a large fleet are those of a smaller one in
/// proportion; but for chance, which makes the peak of the smaller one higher, the same for all policies: by some 15 % where
/// the smaller one's server takes 800 a second.
pub(super) struct Evaluator {
    /// For figures that are shown.
    full: ReconnectScenario,
    /// For a first look at policies that have no mean field.
    coarse: ReconnectScenario,
    /// All clients, by those that are shown.
    scale: f64,
    /// Whether the mean field answers sooner than a simulation would.
    use_fluid: bool,
    /// Nothing brings all clients back sooner.
    pub(super) min_recovery_time: Duration,
    seed: Seed,
}

/// So many clients are simulated at the most, for figures that are shown and for a first look.
const FULL_CLIENTS: u64 = 500_000;
const COARSE_CLIENTS: u64 = 50_000;

/// The server can keep waiting what it does in half a second.
const BACKLOG_SECONDS: f64 = 0.5;

/// Beyond this the steps of the mean field are more than the events of a simulation.
const MAX_FLUID_TIME: Duration = Duration::from_secs(600);

/// So many clients are simulated in all, over all seeds; but with each policy in as many runs as this.
const TOTAL_CLIENTS: u64 = 150_000;
const RUNS: core::ops::RangeInclusive<u64> = 1..=40;

/// Who is not back after ten times as long as it takes at the least, and an hour, does not come back.
const HORIZON_FACTOR: u32 = 10;
const AN_HOUR: Duration = Duration::from_secs(3_600);

/// The longest horizon of a scenario.
const MAX_HORIZON: Duration = Duration::from_secs(76 * 3_600);

impl Evaluator {
    pub(super) fn new(clients: u64, capacity: f64, outage: Duration, seed: Seed) -> Result<Self, ScenarioError> {
        let window = Duration::try_from_secs_f64(clients as f64 / capacity).unwrap_or(Duration::MAX);
        let min_recovery_time = window.saturating_add(outage);
        let horizon = min_recovery_time.saturating_mul(HORIZON_FACTOR).saturating_add(AN_HOUR).min(MAX_HORIZON);
        let scenario = |most: u64| {
            let simulated = clients.min(most);
            let rate = capacity * simulated as f64 / clients as f64;
            let backlog = (rate * BACKLOG_SECONDS).ceil().max(1.0) as u32;
            ReconnectScenario::builder(simulated).rate(rate).backlog(backlog).down_for(outage).horizon(horizon).build()
        };
        let full = scenario(FULL_CLIENTS)?;
        Ok(Self {
            full,
            coarse: scenario(COARSE_CLIENTS)?,
            scale: clients as f64 / full.clients() as f64,
            use_fluid: min_recovery_time <= MAX_FLUID_TIME,
            min_recovery_time,
            seed,
        })
    }

    /// How many clients there are in the figures that are shown.
    pub(super) const fn simulated(&self) -> u64 {
        self.full.clients()
    }

    pub(super) fn runs(&self) -> u32 {
        (TOTAL_CLIENTS / self.simulated()).clamp(*RUNS.start(), *RUNS.end()) as u32
    }

    /// A first look, by the mean field where there is one.
    pub(super) fn screen(&self, policies: &[Policy], progress: &Progress) -> Vec<Candidate> {
        let clients = self.scale * self.simulated() as f64;
        let one = |policy: &Policy, seed: Seed, progress: &Progress| {
            if progress.is_cancelled() {
                return None;
            }
            match self.use_fluid.then(|| fluid::run(&self.full, policy)) {
                Some(Ok(figures)) => Some(from_fluid(&figures, clients)),
                _ => {
                    let figures = self.coarse.run_with_progress(policy, seed, progress)?;
                    Some(mean(&[figures], clients / self.coarse.clients() as f64))
                }
            }
        };
        let screened = Sweep::new().run(policies, &[self.seed.for_call(0)], progress, one);
        candidates(policies, screened.into_iter().map(|runs| runs.into_iter().flatten().next()))
    }

    /// Client by client, with seeds that the first look has not seen. Says also how often somebody tried at the most.
    pub(super) fn simulate(&self, policies: &[Policy], progress: &Progress) -> Vec<(Candidate, u64)> {
        let seeds: Vec<_> = (1..=u64::from(self.runs())).map(|run| self.seed.for_call(run)).collect();
        let each = Sweep::new().run(policies, &seeds, progress, |policy, seed, progress| {
            self.full.run_with_progress(policy, seed, progress)
        });
        let whole = each.into_iter().map(|runs| runs.into_iter().collect::<Option<Vec<ReconnectFigures>>>());
        policies
            .iter()
            .zip(whole)
            .filter_map(|(policy, runs)| {
                let runs = runs?;
                let most = runs.iter().map(|run| run.attempts_max).max().unwrap_or(0);
                Some((Candidate { policy: *policy, predicted: mean(&runs, self.scale) }, most))
            })
            .collect()
    }
}

/// Those that came to their end.
fn candidates(policies: &[Policy], predicted: impl Iterator<Item = Option<Prediction>>) -> Vec<Candidate> {
    policies.iter().zip(predicted).filter_map(|(&policy, it)| Some(Candidate { policy, predicted: it? })).collect()
}

fn from_fluid(figures: &fluid::FluidFigures, clients: f64) -> Prediction {
    let second = (1.0 / TimeSeries::BIN_WIDTH.as_secs_f64()).round() as usize;
    let sums = figures.arrivals.windows(second).map(|bins| bins.iter().sum::<f64>());
    // Where it all takes less than a second there is no window.
    let peak = sums.fold(0.0, f64::max).max(figures.arrivals.iter().take(second).sum());
    Prediction {
        peak_second: peak * clients,
        recovery: figures.t99,
        attempts_per_client: figures.attempts_per_client,
        back: figures.connected,
    }
}

/// The means of some runs; what never happened in one of them never happens.
fn mean(runs: &[ReconnectFigures], scale: f64) -> Prediction {
    let count = runs.len() as f64;
    let mean = |of: &dyn Fn(&ReconnectFigures) -> f64| runs.iter().map(of).sum::<f64>() / count;
    let times: Option<Duration> = runs.iter().map(|run| run.t99).sum();
    Prediction {
        peak_second: mean(&|run| run.peak_second() as f64) * scale,
        recovery: times.map(|sum| sum / u32::try_from(runs.len()).unwrap_or(u32::MAX)),
        attempts_per_client: mean(&|run| run.attempts_per_client()),
        back: mean(&|run| run.connected as f64 / run.clients as f64),
    }
}
