//! Stalls of a server under the load of a deployment: the outages that `stagger simulate outage` runs by default.

use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};
use stagger_sim::outage::{DefaultGuards, OutageFigures, OutageKind, OutageScenario};

use crate::DeploymentContext;
use crate::analysis::PolicyAnalysis;

/// Stalls of three lengths, simulated with a policy and guards.
#[derive(Clone, Debug)]
pub(crate) struct Stalls {
    lengths: [Duration; 3],
    scenarios: Vec<OutageScenario>,
    horizon: Duration,
    rate: f64,
    capacity: f64,
    processes: u32,
    queue: u32,
    timeout: Option<Duration>,
    retry_after: Option<Duration>,
    scaled: bool,
    /// Runs with consecutive seeds: in a small system, chance decides whether one of them recovers.
    runs: u64,
}

/// How long the server stalls: briefly, so that a budget still has its allowance, and longer than most retries take.
pub(crate) const LENGTHS: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(15), Duration::from_secs(60)];
const BEGINS_AT: Duration = Duration::from_secs(20);
/// Time in which the server may recover, in times of a hundred requests.
const WINDOWS: f64 = 10.0;
/// Number of processes if it is not known, as in `stagger simulate outage`.
const PROCESSES: u32 = 10;
/// The queue of the server, in seconds of work.
const QUEUE_SECONDS: f64 = 3.0;
/// Attempts of all runs of a stall. In a larger system chance decides less, so that it needs fewer of them.
const ATTEMPTS_OF_RUNS: f64 = 200_000.0;
/// Runs with guards before they are recommended, if they have no more requests than this together.
const FURTHER_RUNS: u64 = 20;
const REQUESTS_OF_FURTHER_RUNS: f64 = 1_000_000.0;
/// Number of requests per second below which a smaller simulation says little.
const LEAST_RATE: f64 = 20.0;
/// Shortest time that an attempt takes: a round trip.
pub(crate) const ROUND_TRIP: f64 = 0.01;
/// Stands for a recovery that is not seen.
const NEVER: Duration = Duration::from_secs(86_400);

/// How much is simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// A load with more attempts is represented by a smaller one in proportion.
    pub(crate) most_attempts: f64,
    /// Time in which the server may recover.
    pub(crate) afterward: Duration,
    /// The most runs of each stall.
    pub(crate) runs: u64,
}

impl Stalls {
    /// Creates the stalls. Returns `None` if a load in proportion would be too small, or if load or capacity are
    /// unknown.
    pub(crate) fn new(policy: &Policy, known: &DeploymentContext, effort: Effort) -> Option<Self> {
        let (mut rate, mut capacity) = (known.requests?.get(), known.capacity?.get());
        let lengths = known.outages_or(LENGTHS);
        let afterward = effort.afterward.max(Duration::try_from_secs_f64(WINDOWS * 100.0 / rate).ok()?);
        let horizon = BEGINS_AT.saturating_add(lengths[2]).saturating_add(afterward);
        // As if no call succeeded.
        let retries = PolicyAnalysis::new(policy, known).retries_within(horizon);
        let attempts = rate * horizon.as_secs_f64() * (1.0 + retries);
        let scale = (attempts / effort.most_attempts).max(1.0);
        if scale > 1.0 {
            (rate, capacity) = (round(rate / scale), round(capacity / scale));
            if rate < LEAST_RATE {
                return None;
            }
        }
        let processes = match known.clients {
            Some(clients) => u32::try_from(clients.get()).unwrap_or(u32::MAX),
            None => PROCESSES,
        };
        let processes = ((f64::from(processes) / scale).round() as u32).max(1);
        let queue = match known.backlog {
            Some(most) => f64::from(most.get()) / scale,
            None => capacity * QUEUE_SECONDS,
        };
        let queue = queue.ceil().max(1.0) as u32;
        let mut builder =
            OutageScenario::builder(rate).capacity(capacity).queue(queue).processes(processes).horizon(horizon);
        if let Some(timeout) = known.attempt_timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(hint) = known.retry_after {
            builder = builder.retry_after(hint);
        }
        let scenarios = lengths.map(|down| builder.outage(OutageKind::Stall, BEGINS_AT, down).build());
        Some(Self {
            lengths,
            scenarios: scenarios.into_iter().collect::<Result<_, _>>().ok()?,
            horizon,
            rate,
            capacity,
            processes,
            queue,
            timeout: known.attempt_timeout,
            retry_after: known.retry_after,
            scaled: scale > 1.0,
            runs: ((ATTEMPTS_OF_RUNS / attempts) as u64).clamp(1, effort.runs),
        })
    }

    pub(crate) const fn lengths(&self) -> &[Duration; 3] {
        &self.lengths
    }

    /// Returns whether a smaller load represents the actual one.
    pub(crate) const fn is_scaled(&self) -> bool {
        self.scaled
    }

    pub(crate) const fn processes(&self) -> u32 {
        self.processes
    }

    pub(crate) const fn capacity(&self) -> f64 {
        self.capacity
    }

    /// Simulates the stalls with these guards in each process, up to the first from which the server does not recover.
    pub(crate) fn run(&self, policy: &Policy, guards: DefaultGuards) -> Vec<Stall> {
        let mut stalls: Vec<Stall> = Vec::new();
        for scenario in &self.scenarios {
            if stalls.last().is_some_and(|last| last.down > 0) {
                break;
            }
            let seeds = (1..=self.runs).map(Seed::new);
            let runs: Vec<_> = seeds.map(|seed| scenario.run(policy, |seed| guards.process(seed), seed)).collect();
            let mean =
                |figure: &dyn Fn(&OutageFigures) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
            let recovery = mean(&|run| run.recovery().unwrap_or(NEVER).as_secs_f64());
            stalls.push(Stall {
                attempts: mean(&OutageFigures::amplification),
                peak: mean(&|run| run.peak_second() as f64),
                recovery: Duration::try_from_secs_f64(recovery).unwrap_or(NEVER),
                lost: 1.0 - mean(&OutageFigures::success_ratio),
                down: runs.iter().filter(|run| run.state_at_horizon().is_down()).count(),
                runs: runs.len(),
            });
        }
        stalls
    }

    /// Returns whether the server recovers in further runs, too: in a small system, chance decides whether one does.
    pub(crate) fn are_survived(&self, policy: &Policy, guards: DefaultGuards) -> bool {
        let requests = self.rate * self.horizon.as_secs_f64();
        let runs = ((REQUESTS_OF_FURTHER_RUNS / requests) as u64).min(FURTHER_RUNS);
        let mut further = (self.runs + 1..=self.runs + runs).map(Seed::new);
        further.all(|seed| {
            let run = |scenario: &OutageScenario| scenario.run(policy, |seed| guards.process(seed), seed);
            self.scenarios.iter().all(|scenario| !run(scenario).state_at_horizon().is_down())
        })
    }

    /// Returns the command that simulates the same.
    pub(crate) fn command(&self, policy: &Policy, guards: &[DefaultGuards]) -> String {
        let names = guards.iter().map(|guards| guards.name()).collect::<Vec<_>>().join(",");
        let mut command = format!(
            "stagger simulate outage --rate {}/s --capacity {}/s --backlog {} --processes {}",
            self.rate, self.capacity, self.queue, self.processes
        );
        if let Some(timeout) = self.timeout {
            command += &format!(" --timeout {}", Compact(timeout));
        }
        if let Some(hint) = self.retry_after {
            command += &format!(" --retry-after {}", Compact(hint));
        }
        let down = self.lengths.map(|down| Compact(down).to_string()).join(",");
        command += &format!(" --sweep down={down} --horizon {}", Compact(self.horizon));
        if self.runs > 1 {
            command += &format!(" --seeds {}", self.runs);
        }
        command + &format!(" --guards {names} -p '{policy}'")
    }
}

/// What came of a stall: the means of its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stall {
    /// Attempts per request.
    pub(crate) attempts: f64,
    /// Attempts within the busiest second.
    pub(crate) peak: f64,
    pub(crate) recovery: Duration,
    /// Share of the requests that failed.
    pub(crate) lost: f64,
    /// In how many of the runs the server does not recover.
    pub(crate) down: usize,
    pub(crate) runs: usize,
}

/// Rounds to three digits.
pub(crate) fn round(number: f64) -> f64 {
    let unit = 10_f64.powi(number.log10().floor() as i32 - 2);
    ((number / unit).round() * unit * 1e6).round() / 1e6
}
