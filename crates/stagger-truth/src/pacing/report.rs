//! What a run shows, in figures.

use super::run::Log;
use super::scenarios::{Demand, Scenario};
use super::server::{SECOND, Shape};

/// The figures of one run, or the mean of several.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Requests served, as a share of what the server could have served, or the clients wanted if that was less.
    pub goodput: f64,
    /// The share of requests that were refused.
    pub refused: f64,
    /// Seconds from a step until the goodput of a second is 95 % of the new capacity, if it was raised, or at most 5 % of
    /// its requests are refused, if it was lowered.
    pub recovery: Option<f64>,
    /// Jain's index of the processes' goodput: 1 if all have the same.
    pub fairness: Option<f64>,
}

impl Figures {
    /// Returns the figures of a run.
    #[must_use]
    pub fn of(scenario: &Scenario, log: &Log) -> Self {
        let from = (scenario.measured_from / SECOND) as usize;
        let until = (scenario.length / SECOND) as usize;
        let (mut served, mut requests, mut refused, mut possible) = (0, 0, 0, 0.0);
        for n in from..until {
            let second = log.seconds[n];
            served += second.served;
            requests += second.requests;
            refused += second.refused;
            possible += possible_in(scenario, n);
        }
        let share = |part: u64, whole: f64| if whole > 0.0 { part as f64 / whole } else { 0.0 };
        let fairness = (log.processes.len() > 1).then(|| {
            let (sum, squares) = log
                .processes
                .iter()
                .fold((0.0, 0.0), |(sum, squares), &n| (sum + n as f64, squares + (n as f64).powi(2)));
            sum * sum / (log.processes.len() as f64 * squares)
        });
        Self {
            goodput: share(served, possible),
            refused: share(refused, requests as f64),
            recovery: recovery(scenario, log),
            fairness,
        }
    }

    /// Returns the mean of the figures of several runs.
    #[must_use]
    pub fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let optional = |of: fn(&Self) -> Option<f64>| {
            let some: Vec<_> = all.iter().filter_map(of).collect();
            (some.len() == all.len()).then(|| some.iter().sum::<f64>() / some.len() as f64)
        };
        Self {
            goodput: mean(|figures| figures.goodput),
            refused: mean(|figures| figures.refused),
            recovery: optional(|figures| figures.recovery),
            fairness: optional(|figures| figures.fairness),
        }
    }
}

/// Returns how many requests could have been served in this second.
fn possible_in(scenario: &Scenario, second: usize) -> f64 {
    let at = second as u64 * SECOND + SECOND / 2;
    let tasks: usize = scenario.processes().map(|process| process.tasks).sum();
    let saturating = tasks as f64 * SECOND as f64 / (scenario.server.service + 2_000_000) as f64;
    let demand = match scenario.demand {
        Demand::Saturating => saturating,
        Demand::Rate(rate) => rate,
        Demand::Bursts { on, off } => {
            if at % (on + off) < on {
                saturating
            } else {
                0.0
            }
        }
        Demand::Diurnal { mean, period } => {
            let phase = (at % period) as f64 / period as f64 * core::f64::consts::TAU;
            mean * (1.0 - 0.8 * phase.cos())
        }
    };
    let works = 1.0 - scenario.server.errors - scenario.server.timeouts;
    scenario.server.capacity(at).min(demand) * works
}

fn recovery(scenario: &Scenario, log: &Log) -> Option<f64> {
    let Shape::Step(step, factor) = scenario.server.shape else { return None };
    let step = (step / SECOND) as usize;
    let until = (scenario.length / SECOND) as usize;
    let settled = (step..until).find(|&n| {
        let second = log.seconds[n];
        match factor > 1.0 {
            true => second.served as f64 >= 0.95 * possible_in(scenario, n),
            false => n > step && second.refused as f64 <= 0.05 * second.requests as f64,
        }
    });
    Some(settled.map_or(f64::INFINITY, |n| (n - step) as f64))
}
