//! Compares recommended policies with all policies of a grid, simulated with seeds that the search does not use.

use core::num::NonZeroU64;
use core::time::Duration;

use stagger_core::text::Rate;
use stagger_core::{Jitter, Policy, Ratio, Seed};
use stagger_lint::advise::{Answers, advise};
use stagger_lint::{DeploymentContext, Purpose};
use stagger_sim::reconnect::{FirstAttempt, ReconnectScenario};
use stagger_sim::{Progress, Sweep};

/// A fleet, and the grid of policies to compare the recommendation with.
struct Fleet {
    purpose: Purpose,
    clients: u64,
    rate: f64,
    outage: Duration,
    /// `None` if unlimited.
    attempts: Option<u32>,
    /// As multiples of the outage plus the time the server needs to accept all clients.
    spreads: &'static [f64],
    bases: &'static [u64],
}

/// Peak, and seconds until 99 % of the clients are back; more if fewer clients come back.
type Objectives = [f64; 2];

impl Fleet {
    fn answers(&self) -> Answers {
        let fleet = DeploymentContext::default()
            .purpose(self.purpose)
            .clients(NonZeroU64::new(self.clients).unwrap())
            .capacity(Rate::per_second(self.rate).unwrap());
        Answers::from_context(fleet).outage(self.outage)
    }

    /// Returns all policies of the grid.
    fn grid(&self) -> Vec<Policy> {
        let window = Duration::from_secs_f64(self.clients as f64 / self.rate) + self.outage;
        let jitters =
            [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Decorrelated, Jitter::Factor(Ratio::percent(20))];
        let mut grid = Vec::new();
        for (&base, jitter) in self.bases.iter().flat_map(|base| jitters.map(|jitter| (base, jitter))) {
            for (&spread, multiplier) in self.spreads.iter().flat_map(|by| [1.5, 2.0, 4.0].map(|m| (by, m))) {
                let builder = Policy::exponential(Duration::from_millis(base), Duration::from_secs(30))
                    .multiplier(multiplier)
                    .jitter(jitter)
                    .spread(window.mul_f64(spread));
                let builder = match self.attempts {
                    Some(attempts) => builder.max_attempts(attempts),
                    None => builder.unlimited_attempts(),
                };
                // Decorrelated jitter has no multiplier but 2.
                grid.extend(builder.build().ok());
            }
        }
        grid
    }

    /// Returns the objectives of each policy, as means over seeds that the search does not use.
    fn objectives(&self, policies: &[Policy]) -> Vec<Objectives> {
        let backlog = (self.rate / 2.0).ceil() as u32;
        let scenario = ReconnectScenario::builder(self.clients).rate(self.rate).backlog(backlog).down_for(self.outage);
        let first = match self.purpose {
            Purpose::Reconnecting => FirstAttempt::AfterDelay,
            _ => FirstAttempt::Immediate,
        };
        let scenario = scenario.first_attempt(first).horizon(Duration::from_secs(3_600)).build().unwrap();
        let seeds = [901, 902, 903, 904].map(Seed::new);
        let each = Sweep::new().run(policies, &seeds, &Progress::new(), |policy, seed, _| {
            let figures = scenario.run(policy, seed);
            let missing = 1.0 - figures.connected as f64 / figures.clients as f64;
            let recovery = figures.t99.map_or(1e9 * (1.0 + missing), |time| time.as_secs_f64());
            Some([figures.peak_second() as f64, recovery])
        });
        let mean = |runs: Vec<Option<Objectives>>| {
            let count = runs.len() as f64;
            runs.into_iter().flatten().fold([0.0; 2], |sum, run| [sum[0] + run[0] / count, sum[1] + run[1] / count])
        };
        each.into_iter().map(mean).collect()
    }

    #[track_caller]
    fn assert_not_dominated(&self) {
        let advice = advise(&self.answers(), Seed::new(1), &Progress::new()).unwrap();
        let advised = *advice.policy().unwrap();
        let [peak, recovery] = self.objectives(&[advised])[0];
        let grid = self.grid();
        assert!(grid.len() > 50, "{}", grid.len());
        for (policy, objectives) in grid.iter().zip(self.objectives(&grid)) {
            let dominates = objectives[0] < 0.95 * peak && objectives[1] < 0.95 * recovery;
            assert!(!dominates, "{policy} has {objectives:?}, {advised} has {:?}", [peak, recovery]);
        }
    }
}

#[test]
fn the_policy_for_reconnects_after_a_restart_is_not_dominated() {
    Fleet {
        purpose: Purpose::Reconnecting,
        clients: 10_000,
        rate: 500.0,
        outage: Duration::ZERO,
        attempts: None,
        spreads: &[0.0, 0.25, 0.5, 0.9, 1.0, 1.1, 1.3, 1.6, 2.0],
        bases: &[100, 500, 2_000, 5_000],
    }
    .assert_not_dominated();
}

#[test]
fn the_policy_for_background_jobs_after_an_outage_is_not_dominated() {
    Fleet {
        purpose: Purpose::Background,
        clients: 2_000,
        rate: 100.0,
        outage: Duration::from_secs(10),
        attempts: None,
        spreads: &[0.0, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2.0],
        bases: &[1_000, 2_000, 3_500, 5_000],
    }
    .assert_not_dominated();
}

#[test]
fn the_policy_for_calls_to_a_remote_service_is_not_dominated() {
    Fleet {
        purpose: Purpose::Far,
        clients: 400,
        rate: 200.0,
        outage: Duration::ZERO,
        attempts: Some(4),
        spreads: &[0.0],
        bases: &[100, 150, 200, 300, 500, 700, 1_000],
    }
    .assert_not_dominated();
}
