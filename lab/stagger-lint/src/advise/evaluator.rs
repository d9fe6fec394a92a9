use core::time::Duration;

use stagger_core::{Policy, Seed};

use super::pareto_front::{Candidate, Prediction, outages_of};
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
    clients: u64,
    capacity: f64,
    first_attempt: FirstAttempt,
    /// One for all outages.
    horizon: Duration,
    /// The outages that every policy is judged on, in ascending order.
    pub(super) outages: Vec<Duration>,
    /// Whether the fluid model is faster than a simulation, and the fleet large enough for it.
    use_fluid: bool,
    /// Lower bound on the time from the end of the outage until all clients are back: clients / capacity.
    pub(super) acceptance_time: Duration,
    seed: Seed,
}

/// How exactly policies are simulated: maximum numbers of clients and of runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail {
    clients: u64,
    runs: u32,
}

/// Maximum number of simulated clients: for reported figures, for the search if there are several outages, and for
/// screening policies that the fluid model does not support, over all outages.
const FULL_CLIENTS: u64 = 20_000;
const SEARCHED_CLIENTS: u64 = 5_000;
const COARSE_CLIENTS: u64 = 2_000;
const MAX_COARSE_CLIENTS: u64 = 6_000;
const SEVERAL_COARSE_CLIENTS: core::ops::RangeInclusive<u64> = 500..=1_000;

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
    /// Creates an evaluator for the outages that were asked for, and for those of the others that can be simulated.
    pub(super) fn new(
        clients: u64,
        capacity: f64,
        asked: &[Duration],
        judged: Vec<Duration>,
        first_attempt: FirstAttempt,
        seed: Seed,
    ) -> Result<Self, ScenarioError> {
        let acceptance_time = Duration::try_from_secs_f64(clients as f64 / capacity).unwrap_or(Duration::MAX);
        let (mut horizon, mut outages) = (A_DAY, Vec::new());
        for outage in judged {
            match ReconnectScenario::of_fleet(clients, capacity, outage, FULL_CLIENTS).build() {
                Ok(scenario) => {
                    horizon = horizon.max(scenario.horizon());
                    outages.push(outage);
                }
                Err(error) if asked.contains(&outage) => return Err(error),
                // Nearly as long as the longest that can be simulated.
                Err(_) => {}
            }
        }
        let total = outages.iter().fold(Duration::ZERO, |sum, outage| sum.saturating_add(*outage));
        let recoveries = acceptance_time.saturating_mul(u32::try_from(outages.len()).unwrap_or(u32::MAX));
        Ok(Self {
            clients,
            capacity,
            first_attempt,
            horizon,
            use_fluid: clients > COARSE_CLIENTS && total.saturating_add(recoveries) <= MAX_FLUID_TIME,
            acceptance_time,
            outages,
            seed,
        })
    }

    /// Returns the scenario of an outage with at most this many clients; `None` if it cannot be simulated.
    fn scenario(&self, outage: Duration, most: u64) -> Option<ReconnectScenario> {
        let fleet = ReconnectScenario::of_fleet(self.clients, self.capacity, outage, most);
        fleet.first_attempt(self.first_attempt).horizon(self.horizon).build().ok()
    }

    /// Returns the ratio of all clients to simulated ones.
    fn scale(&self, most: u64) -> f64 {
        self.clients as f64 / self.clients.min(most) as f64
    }

    /// Returns the number of clients of the reported figures.
    pub(super) fn simulated(&self) -> u64 {
        self.clients.min(FULL_CLIENTS)
    }

    /// Returns the scenario of the reported figures, with the longest outage.
    pub(super) fn reported_scenario(&self) -> Option<ReconnectScenario> {
        self.scenario(*self.outages.last()?, FULL_CLIENTS)
    }

    /// Returns how exactly the search simulates policies.
    pub(super) fn searched(&self) -> Detail {
        let clients = if self.outages.len() > 1 { SEARCHED_CLIENTS } else { FULL_CLIENTS };
        let each = self.clients.min(clients) * if self.outages.len() > 1 { 3 } else { 1 };
        Detail { clients, runs: (TOTAL_CLIENTS / each.max(1)).clamp(*RUNS.start(), *RUNS.end()) as u32 }
    }

    /// Returns how exactly reported figures are simulated.
    pub(super) fn reported(&self) -> Detail {
        let runs = (TOTAL_CLIENTS / self.simulated().max(1)).clamp(*RUNS.start(), MAX_REPORTED_RUNS);
        Detail { clients: FULL_CLIENTS, runs: runs as u32 }
    }

    pub(super) fn reported_runs(&self) -> u32 {
        self.reported().runs
    }

    /// Returns the number of clients that the search simulates for each policy.
    pub(super) fn clients_of_policy(&self) -> u64 {
        let detail = self.searched();
        self.clients.min(detail.clients) * u64::from(detail.runs) * self.outages.len() as u64
    }

    /// Returns the number of clients with which policies are screened, and of runs.
    fn coarse(&self) -> (u64, u64) {
        let outages = self.outages.len() as u64;
        let most = match outages {
            0 | 1 => COARSE_CLIENTS,
            several => {
                (2 * COARSE_CLIENTS / several).clamp(*SEVERAL_COARSE_CLIENTS.start(), *SEVERAL_COARSE_CLIENTS.end())
            }
        };
        // In one run of a small fleet, a client or two decide when 99 % are back.
        let clients = self.clients.min(most).max(1);
        let runs = (COARSE_CLIENTS / 2 / clients).min(MAX_COARSE_CLIENTS / clients / outages.max(1));
        (most, runs.clamp(1, *RUNS.end() / 2))
    }

    /// Estimates policies quickly, with the fluid model where it is fast. Leaves out those that are hopeless after some
    /// of the outages.
    pub(super) fn screen(
        &self,
        policies: &[Policy],
        is_hopeless: impl Fn(&Candidate) -> bool + Sync,
        progress: &Progress,
    ) -> Vec<Candidate> {
        let (coarse_clients, coarse_runs) = self.coarse();
        let in_outage = |policy: &Policy, outage: Duration, seed: Seed| {
            if progress.cancel_token().is_cancelled() {
                return None;
            }
            if self.use_fluid {
                if let Ok(figures) = fluid::run(&self.scenario(outage, FULL_CLIENTS)?, policy) {
                    return Some(Prediction {
                        peak_second: figures.peak_second() * self.clients as f64,
                        recovery: figures.t99.map(|time| time.saturating_sub(outage)),
                        attempts_per_client: figures.attempts_per_client,
                        recovered_ratio: figures.connected,
                    });
                }
            }
            let coarse = self.scenario(outage, coarse_clients)?;
            let runs = (0..coarse_runs).map(|run| seed.for_call(run));
            let runs = runs.map(|seed| coarse.run_with_progress(policy, seed, progress));
            let figures = runs.collect::<Option<Vec<_>>>()?;
            Some(mean(&figures, self.scale(coarse_clients), outage))
        };
        let one = |policy: &Policy, seed: Seed, _: &Progress| {
            let mut by_outage = Vec::new();
            for outage in self.outages_of(policy) {
                by_outage.push((outage, in_outage(policy, outage, seed)?));
                if is_hopeless(&self.candidate(*policy, by_outage.clone())) {
                    return None;
                }
            }
            Some(by_outage)
        };
        let screened = Sweep::new().run(policies, &[self.seed.for_call(u64::MAX)], progress, one);
        let predicted = screened.into_iter().map(|runs| runs.into_iter().flatten().next());
        policies.iter().zip(predicted).filter_map(|(&policy, it)| Some(self.candidate(policy, it?))).collect()
    }

    /// Returns the outages that a policy is judged on: first those of every policy, then its own.
    fn outages_of(&self, policy: &Policy) -> Vec<Duration> {
        outages_of(&self.outages, policy)
    }

    fn candidate(&self, policy: Policy, by_outage: Vec<(Duration, Prediction)>) -> Candidate {
        Candidate::new(policy, by_outage, self.outages.len())
    }

    /// Simulates policies client by client, with seeds not used for screening. Also returns the maximum number of
    /// attempts of a client.
    pub(super) fn simulate(&self, policies: &[Policy], detail: Detail, progress: &Progress) -> Vec<(Candidate, u64)> {
        let first = self.seed.get();
        let seeds: Vec<_> = (0..u64::from(detail.runs)).map(|run| Seed::new(first.wrapping_add(run))).collect();
        let each = Sweep::new().run(policies, &seeds, progress, |policy, seed, progress| {
            let run = |outage| self.scenario(outage, detail.clients)?.run_with_progress(policy, seed, progress);
            self.outages_of(policy).into_iter().map(run).collect::<Option<Vec<_>>>()
        });
        let mut simulated = Vec::new();
        for (&policy, runs) in policies.iter().zip(each) {
            // Runs that were cancelled have no figures.
            let Some(runs) = runs.into_iter().collect::<Option<Vec<Vec<ReconnectFigures>>>>() else { continue };
            let most = runs.iter().flatten().map(|run| run.attempts_max).max().unwrap_or(0);
            let by_outage = self.outages_of(&policy).into_iter().enumerate().map(|(at, outage)| {
                let of_outage: Vec<_> = runs.iter().map(|run| run[at].clone()).collect();
                (outage, mean(&of_outage, self.scale(detail.clients), outage))
            });
            simulated.push((self.candidate(policy, by_outage.collect()), most));
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
