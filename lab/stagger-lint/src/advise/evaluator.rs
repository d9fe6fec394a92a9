use core::time::Duration;

use stagger_core::{Policy, Seed};

use super::pareto_front::{Candidate, Prediction};
use stagger_sim::Progress;
use stagger_sim::ScenarioError;
use stagger_sim::Sweep;
use stagger_sim::fluid;
use stagger_sim::reconnect::{FirstAttempt, ReconnectFigures, ReconnectScenario};

/// Evaluates policies for a fleet in one or several outages, with no more clients than needed to distinguish policies.
///
/// A large fleet is represented by a smaller one in proportion. Random variation raises the peak of the smaller fleet,
/// equally for all policies: by about 15 % if its server accepts 800 clients per second.
pub(super) struct Evaluator {
    /// For the reported figures, one for each outage.
    full: Vec<ReconnectScenario>,
    /// For screening policies that the fluid model does not support.
    coarse: Vec<ReconnectScenario>,
    pub(super) outages: Vec<Duration>,
    /// Ratio of all clients to simulated clients.
    scale: f64,
    /// Whether the fluid model is faster than a simulation, and the fleet large enough for it.
    use_fluid: bool,
    /// Lower bound on the time from the end of the outage until all clients are back: clients / capacity.
    pub(super) acceptance_time: Duration,
    seed: Seed,
}

/// Maximum number of simulated clients, for reported figures and for screening.
const FULL_CLIENTS: u64 = 20_000;
const COARSE_CLIENTS: u64 = 2_000;

/// Sum of all outages and recovery times above which the fluid model has more steps than a simulation has events.
const MAX_FLUID_TIME: Duration = Duration::from_secs(90);

/// The shortest time to simulate, which is the default of a scenario.
const A_DAY: Duration = Duration::from_secs(86_400);

/// Number of clients to simulate per policy over all runs, the range of the number of runs, and the maximum number for
/// reported figures: in one run of ten, one client of a small fleet may decide when 99 % are back.
const TOTAL_CLIENTS: u64 = 30_000;
const RUNS: core::ops::RangeInclusive<u64> = 2..=8;
const MAX_REPORTED_RUNS: u64 = 32;

impl Evaluator {
    pub(super) fn new(
        clients: u64,
        capacity: f64,
        outages: Vec<Duration>,
        first_attempt: FirstAttempt,
        seed: Seed,
    ) -> Result<Self, ScenarioError> {
        let acceptance_time = Duration::try_from_secs_f64(clients as f64 / capacity).unwrap_or(Duration::MAX);
        let scenarios = |most: u64| -> Result<Vec<_>, ScenarioError> {
            let mut horizon = A_DAY;
            for outage in &outages {
                horizon = horizon.max(ReconnectScenario::of_fleet(clients, capacity, *outage, most).build()?.horizon());
            }
            let of_fleet = |outage: &Duration| {
                let fleet = ReconnectScenario::of_fleet(clients, capacity, *outage, most);
                fleet.first_attempt(first_attempt).horizon(horizon).build()
            };
            outages.iter().map(of_fleet).collect()
        };
        // In several outages, each policy is simulated several times.
        let coarse_clients = if outages.len() > 1 { COARSE_CLIENTS / 2 } else { COARSE_CLIENTS };
        let (full, coarse) = (scenarios(FULL_CLIENTS)?, scenarios(coarse_clients)?);
        let simulated = clients.min(FULL_CLIENTS);
        let total = outages.iter().fold(Duration::ZERO, |sum, outage| sum.saturating_add(*outage));
        let recoveries = acceptance_time.saturating_mul(u32::try_from(outages.len()).unwrap_or(u32::MAX));
        Ok(Self {
            full,
            coarse,
            scale: clients as f64 / simulated as f64,
            use_fluid: clients > COARSE_CLIENTS && total.saturating_add(recoveries) <= MAX_FLUID_TIME,
            acceptance_time,
            outages,
            seed,
        })
    }

    pub(super) fn simulated(&self) -> u64 {
        self.full.first().map_or(0, ReconnectScenario::clients)
    }

    /// Returns the scenarios of the reported figures, one for each outage.
    pub(super) fn scenarios(&self) -> &[ReconnectScenario] {
        &self.full
    }

    pub(super) fn runs(&self) -> u32 {
        self.reported_runs().min(*RUNS.end() as u32)
    }

    /// Returns the number of runs for reported figures.
    pub(super) fn reported_runs(&self) -> u32 {
        (TOTAL_CLIENTS / self.simulated().max(1)).clamp(*RUNS.start(), MAX_REPORTED_RUNS) as u32
    }

    /// Returns the number of runs with which a small fleet is screened.
    fn coarse_runs(&self) -> u64 {
        let clients = self.coarse.first().map_or(1, ReconnectScenario::clients);
        let all = clients.saturating_mul(self.outages.len() as u64);
        (COARSE_CLIENTS / 2 / all.max(1)).clamp(1, *RUNS.end() / 2)
    }

    /// Estimates policies quickly, with the fluid model where it is fast. Leaves out those that are hopeless after some
    /// of the outages.
    pub(super) fn screen(
        &self,
        policies: &[Policy],
        is_hopeless: impl Fn(&Policy, &[Prediction]) -> bool + Sync,
        progress: &Progress,
    ) -> Vec<Candidate> {
        let clients = self.scale * self.simulated() as f64;
        let in_outage = |policy: &Policy, full: &ReconnectScenario, coarse: &ReconnectScenario, seed: Seed| {
            if progress.cancel_token().is_cancelled() {
                return None;
            }
            if self.use_fluid {
                if let Ok(figures) = fluid::run(full, policy) {
                    return Some(Prediction {
                        peak_second: figures.peak_second() * clients,
                        recovery: figures.t99.map(|time| time.saturating_sub(full.down_time())),
                        attempts_per_client: figures.attempts_per_client,
                        recovered_ratio: figures.connected,
                    });
                }
            }
            let runs = (0..self.coarse_runs()).map(|run| seed.for_call(run));
            let runs = runs.map(|seed| coarse.run_with_progress(policy, seed, progress));
            let figures = runs.collect::<Option<Vec<_>>>()?;
            Some(mean(&figures, clients / coarse.clients() as f64, coarse.down_time()))
        };
        let one = |policy: &Policy, seed: Seed, _: &Progress| {
            let mut by_outage = Vec::new();
            for (full, coarse) in self.full.iter().zip(&self.coarse) {
                by_outage.push(in_outage(policy, full, coarse, seed)?);
                if is_hopeless(policy, &by_outage) {
                    return None;
                }
            }
            Some(by_outage)
        };
        let screened = Sweep::new().run(policies, &[self.seed.for_call(u64::MAX)], progress, one);
        let predicted = screened.into_iter().map(|runs| runs.into_iter().flatten().next());
        policies.iter().zip(predicted).filter_map(|(&policy, it)| Some(Candidate::new(policy, it?))).collect()
    }

    /// Simulates policies client by client, with seeds not used for screening. Also returns the maximum number of
    /// attempts of a client.
    pub(super) fn simulate(&self, policies: &[Policy], runs: u32, progress: &Progress) -> Vec<(Candidate, u64)> {
        let first = self.seed.get();
        let seeds: Vec<_> = (0..u64::from(runs)).map(|run| Seed::new(first.wrapping_add(run))).collect();
        let each = Sweep::new().run(policies, &seeds, progress, |policy, seed, progress| {
            self.full.iter().map(|full| full.run_with_progress(policy, seed, progress)).collect::<Option<Vec<_>>>()
        });
        let mut simulated = Vec::new();
        for (&policy, runs) in policies.iter().zip(each) {
            // Runs that were cancelled have no figures.
            let Some(runs) = runs.into_iter().collect::<Option<Vec<Vec<ReconnectFigures>>>>() else { continue };
            let most = runs.iter().flatten().map(|run| run.attempts_max).max().unwrap_or(0);
            let by_outage = self.full.iter().enumerate().map(|(at, full)| {
                let of_outage: Vec<_> = runs.iter().map(|run| run[at].clone()).collect();
                mean(&of_outage, self.scale, full.down_time())
            });
            simulated.push((Candidate::new(policy, by_outage.collect()), most));
        }
        simulated
    }
}

/// Returns the means over runs; a time that was not reached in one run is `None`.
fn mean(runs: &[ReconnectFigures], scale: f64, outage: Duration) -> Prediction {
    let count = runs.len() as f64;
    let mean = |of: &dyn Fn(&ReconnectFigures) -> f64| runs.iter().map(of).sum::<f64>() / count;
    let times: Option<Duration> = runs.iter().map(|run| Some(run.t99?.saturating_sub(outage))).sum();
    Prediction {
        peak_second: mean(&|run| run.peak_second() as f64) * scale,
        recovery: times.map(|sum| sum / u32::try_from(runs.len()).unwrap_or(u32::MAX)),
        attempts_per_client: mean(&|run| run.attempts_per_client()),
        recovered_ratio: mean(&|run| run.connected as f64 / run.clients as f64),
    }
}
