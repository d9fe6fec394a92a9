//! What is advised is simulated with seeds that the search has not seen, beside every policy of a grid.

use core::num::NonZeroU64;
use core::time::Duration;

use stagger_core::{Jitter, Policy, Ratio, Seed};
use stagger_sim::advise::{Answers, advise};
use stagger_sim::lint::{DeploymentContext, Purpose, Rate};
use stagger_sim::reconnect::ReconnectScenario;
use stagger_sim::{Progress, Sweep};

/// A fleet, and what may be advised to it.
struct Fleet {
    purpose: Purpose,
    clients: u64,
    rate: f64,
    outage: Duration,
    /// `None`: as often as it takes.
    attempts: Option<u32>,
    /// Of the time in which the server can take everyone, and is down.
    spreads: &'static [f64],
    bases: &'static [u64],
}

/// Peak, and seconds until 99 % are back; of those that never are, more that are back are better.
type Goals = [f64; 2];

impl Fleet {
    fn answers(&self) -> Answers {
        let fleet = DeploymentContext::default()
            .purpose(self.purpose)
            .clients(NonZeroU64::new(self.clients).unwrap())
            .capacity(Rate::per_second(self.rate).unwrap());
        Answers::from_context(fleet).outage(self.outage)
    }

    /// Every policy of the grid.
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

    /// The goals of each policy: means over seeds of their own.
    fn goals(&self, policies: &[Policy]) -> Vec<Goals> {
        let backlog = (self.rate / 2.0).ceil() as u32;
        let scenario = ReconnectScenario::builder(self.clients).rate(self.rate).backlog(backlog).down_for(self.outage);
        let scenario = scenario.horizon(Duration::from_secs(3_600)).build().unwrap();
        let seeds = [901, 902, 903, 904].map(Seed::new);
        let each = Sweep::new().run(policies, &seeds, &Progress::new(), |policy, seed, _| {
            let figures = scenario.run(policy, seed);
            let missing = 1.0 - figures.connected as f64 / figures.clients as f64;
            let recovery = figures.t99.map_or(1e9 * (1.0 + missing), |time| time.as_secs_f64());
            Some([figures.peak_second() as f64, recovery])
        });
        let mean = |runs: Vec<Option<Goals>>| {
            let count = runs.len() as f64;
            runs.into_iter().flatten().fold([0.0; 2], |sum, run| [sum[0] + run[0] / count, sum[1] + run[1] / count])
        };
        each.into_iter().map(mean).collect()
    }

    #[track_caller]
    fn is_not_beaten(&self) {
        let advice = advise(&self.answers(), Seed::new(1), &Progress::new()).unwrap();
        let advised = *advice.policy().unwrap();
        let [peak, recovery] = self.goals(&[advised])[0];
        let grid = self.grid();
        assert!(grid.len() > 50, "{}", grid.len());
        for (policy, goals) in grid.iter().zip(self.goals(&grid)) {
            let beaten = goals[0] < 0.95 * peak && goals[1] < 0.95 * recovery;
            assert!(!beaten, "{policy} has {goals:?}, {advised} has {:?}", [peak, recovery]);
        }
    }
}

#[test]
fn connections_cut_off_by_a_restart_have_no_better_policy() {
    Fleet {
        purpose: Purpose::Reconnecting,
        clients: 10_000,
        rate: 500.0,
        outage: Duration::ZERO,
        attempts: None,
        spreads: &[0.0, 0.25, 0.5, 0.9, 1.0, 1.1, 1.3, 1.6, 2.0],
        bases: &[100, 500, 2_000, 5_000],
    }
    .is_not_beaten();
}

#[test]
fn jobs_that_wait_for_a_server_which_is_down_have_no_better_policy() {
    Fleet {
        purpose: Purpose::Background,
        clients: 2_000,
        rate: 100.0,
        outage: Duration::from_secs(10),
        attempts: None,
        spreads: &[0.0, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2.0],
        bases: &[1_000, 2_000, 3_500, 5_000],
    }
    .is_not_beaten();
}

#[test]
fn calls_to_a_far_service_have_no_better_policy() {
    Fleet {
        purpose: Purpose::Far,
        clients: 400,
        rate: 200.0,
        outage: Duration::ZERO,
        attempts: Some(4),
        spreads: &[0.0],
        bases: &[100, 150, 200, 300, 500, 700, 1_000],
    }
    .is_not_beaten();
}
