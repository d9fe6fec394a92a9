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
pub(super) struct Arena {
    /// For figures that are shown.
    shown: ReconnectScenario,
    /// For a first look at policies that have no mean field.
    rough: ReconnectScenario,
    /// All clients, by those that are shown.
    scale: f64,
    /// Whether the mean field answers sooner than a simulation would.
    by_field: bool,
    /// Nothing brings all clients back sooner.
    pub(super) min_recovery_time: Duration,
    seed: Seed,
}

/// So many clients are simulated at the most, for figures that are shown and for a first look.
const SHOWN: u64 = 500_000;
const ROUGH: u64 = 50_000;

/// The server can keep waiting what it does in half a second.
const BACKLOG_SECONDS: f64 = 0.5;

/// Beyond this the steps of the mean field are more than the events of a simulation.
const FIELD_LASTS: Duration = Duration::from_secs(600);

/// So many clients are simulated in all, over all seeds; but with each policy in as many runs as this.
const WORTH: u64 = 150_000;
const RUNS: core::ops::RangeInclusive<u64> = 1..=40;

/// Who is not back after ten times as long as it takes at the least, and an hour, does not come back.
const PATIENCE: u32 = 10;
const AN_HOUR: Duration = Duration::from_secs(3_600);

/// The longest horizon of a scenario.
const LONGEST: Duration = Duration::from_secs(76 * 3_600);

impl Arena {
    pub(super) fn new(clients: u64, capacity: f64, outage: Duration, seed: Seed) -> Result<Self, ScenarioError> {
        let window = Duration::try_from_secs_f64(clients as f64 / capacity).unwrap_or(Duration::MAX);
        let min_recovery_time = window.saturating_add(outage);
        let horizon = min_recovery_time.saturating_mul(PATIENCE).saturating_add(AN_HOUR).min(LONGEST);
        let scenario = |most: u64| {
            let simulated = clients.min(most);
            let rate = capacity * simulated as f64 / clients as f64;
            let backlog = (rate * BACKLOG_SECONDS).ceil().max(1.0) as u32;
            ReconnectScenario::builder(simulated).rate(rate).backlog(backlog).down_for(outage).horizon(horizon).build()
        };
        let shown = scenario(SHOWN)?;
        Ok(Self {
            shown,
            rough: scenario(ROUGH)?,
            scale: clients as f64 / shown.clients() as f64,
            by_field: min_recovery_time <= FIELD_LASTS,
            min_recovery_time,
            seed,
        })
    }

    /// How many clients there are in the figures that are shown.
    pub(super) const fn simulated(&self) -> u64 {
        self.shown.clients()
    }

    pub(super) fn runs(&self) -> u32 {
        (WORTH / self.simulated()).clamp(*RUNS.start(), *RUNS.end()) as u32
    }

    /// A first look, by the mean field where there is one.
    pub(super) fn look(&self, policies: &[Policy], progress: &Progress) -> Vec<Candidate> {
        let clients = self.scale * self.simulated() as f64;
        let one = |policy: &Policy, seed: Seed, progress: &Progress| {
            if progress.is_cancelled() {
                return None;
            }
            match self.by_field.then(|| fluid::run(&self.shown, policy)) {
                Some(Ok(figures)) => Some(of_field(&figures, clients)),
                _ => {
                    let figures = self.rough.run_with_progress(policy, seed, progress)?;
                    Some(mean(&[figures], clients / self.rough.clients() as f64))
                }
            }
        };
        let looked = Sweep::new().run(policies, &[self.seed.for_call(0)], progress, one);
        candidates(policies, looked.into_iter().map(|runs| runs.into_iter().flatten().next()))
    }

    /// Client by client, with seeds that the first look has not seen. Says also how often somebody tried at the most.
    pub(super) fn simulate(&self, policies: &[Policy], progress: &Progress) -> Vec<(Candidate, u64)> {
        let seeds: Vec<_> = (1..=u64::from(self.runs())).map(|run| self.seed.for_call(run)).collect();
        let each = Sweep::new().run(policies, &seeds, progress, |policy, seed, progress| {
            self.shown.run_with_progress(policy, seed, progress)
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

fn of_field(figures: &fluid::FluidFigures, clients: f64) -> Prediction {
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
