//! The grids on which our own profiles are chosen, and what a policy does on them.
//!
//! The guide, "How the profiles were chosen", has the criterion in words.

use core::time::Duration;

use stagger::{Policy, Seed};
use stagger_sim::ScenarioError;
use stagger_sim::outage::{OutageKind, OutageScenario, ProcessGuards};
use stagger_sim::reconnect::{FirstAttempt, ReconnectScenario};

/// The circumstances in which the policies for a kind of purpose are compared.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    kind: Kind,
    cells: Vec<Cell>,
}

/// What is retried, which decides the circumstances and the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Connections that are kept up: all are lost at once, or one alone.
    Connections,
    /// Jobs that nobody waits for, all of which try at once.
    Jobs,
    /// Calls that arrive continuously, and whose callers wait.
    Calls,
}

/// One combination of circumstances.
#[derive(Clone, Debug)]
struct Cell {
    scenario: Scenario,
}

#[derive(Clone, Debug)]
enum Scenario {
    Fleet { scenario: ReconnectScenario, outage: Duration, peak_from: Duration },
    Traffic { scenario: OutageScenario },
}

/// What a policy does, in one cell or on a whole grid. Less of each figure is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    /// The attempts of the busiest second as a multiple of the capacity. A peak below the capacity is no improvement,
    /// and counts as 1.
    pub(crate) peak: f64,
    /// Seconds from the end of the outage until 99 % of the clients are served again, or until a server is up again;
    /// at least a second.
    pub(crate) recovery: f64,
    /// The mean number of attempts of a client.
    pub(crate) attempts: f64,
    /// The share of the clients that are not served. For calls, the mean of two: if each attempt fails with probability
    /// 1/2, and if the server rejects everything for a second from the start of the call.
    pub(crate) lost: f64,
    /// The mean time, in seconds, that a client waits which fails alone, while the server is well. 0 for jobs.
    pub(crate) alone: f64,
    /// The mean time, in seconds, after which the caller of a server that stays down is told. 0 unless somebody waits.
    pub(crate) told: f64,
    /// The largest share of the callers that retry within the same millisecond if all fail in the same instant. 0
    /// unless somebody waits.
    pub(crate) crowd: f64,
}

/// The clients divided by the capacity of their server, and the outages, both in seconds.
const ACCEPTANCE: [u64; 4] = [1, 5, 20, 60];
const OUTAGES: [u64; 5] = [0, 5, 30, 120, 600];

/// The number of clients of a fleet.
const CLIENTS: u64 = 1_000;

/// The load of a server that is called, as shares of its capacity, and the outages, in seconds.
const LOADS: [f64; 4] = [0.1, 0.3, 0.5, 0.7];
const CALL_OUTAGES: [u64; 2] = [5, 30];

/// The calls per second that the server can answer.
const CAPACITY: f64 = 100.0;

/// Seconds of traffic before and after an outage.
const BEFORE: u64 = 5;
const AFTER: u64 = 60;

/// Seconds without a recovery: a day.
const NEVER: f64 = 86_400.0;

impl Grid {
    /// Creates the grid of a kind.
    ///
    /// # Errors
    /// None with the numbers above.
    pub(crate) fn new(kind: Kind) -> Result<Self, ScenarioError> {
        let cells = match kind {
            Kind::Connections => fleets(FirstAttempt::AfterDelay, Duration::ZERO),
            // The first second has the first attempts of all, whatever the policy is.
            Kind::Jobs => fleets(FirstAttempt::Immediate, Duration::from_secs(1)),
            Kind::Calls => traffic(),
        };
        Ok(Self { kind, cells: cells? })
    }

    /// Returns the figures of the whole grid: the geometric means over its cells, and of the share that is lost the
    /// arithmetic mean.
    ///
    /// A policy that is at least as good as another one in each cell is so in these means. So if no policy is better in
    /// all of them, none is better cell by cell.
    pub(crate) fn figures(&self, policy: &Policy, seed: Seed) -> Figures {
        let cells: Vec<Figures> = self.cells.iter().map(|cell| cell.figures(policy, seed)).collect();
        let count = cells.len() as f64;
        let mean = |of: &dyn Fn(&Figures) -> f64| cells.iter().map(of).sum::<f64>() / count;
        let geometric = |of: &dyn Fn(&Figures) -> f64| mean(&|cell| of(cell).ln()).exp();
        Figures {
            peak: geometric(&|cell| cell.peak),
            recovery: geometric(&|cell| cell.recovery),
            attempts: geometric(&|cell| cell.attempts),
            lost: if self.kind == Kind::Calls { lost(policy) } else { mean(&|cell| cell.lost) },
            ..self.computed(policy)
        }
    }

    /// Returns the figures that need no simulation; the others are 0.
    pub(crate) fn computed(&self, policy: &Policy) -> Figures {
        let none = Figures { peak: 0.0, recovery: 0.0, attempts: 0.0, lost: 0.0, alone: 0.0, told: 0.0, crowd: 0.0 };
        match self.kind {
            Kind::Connections => Figures { alone: alone(policy), ..none },
            Kind::Jobs => none,
            Kind::Calls => {
                Figures { lost: lost(policy), alone: alone(policy), told: told(policy), crowd: crowd(policy), ..none }
            }
        }
    }
}

fn fleets(first: FirstAttempt, peak_from: Duration) -> Result<Vec<Cell>, ScenarioError> {
    let each = ACCEPTANCE.iter().flat_map(|accepts| OUTAGES.iter().map(move |down| (*accepts, *down)));
    let cells = each.map(|(accepts, down)| {
        let rate = CLIENTS as f64 / accepts as f64;
        let outage = Duration::from_secs(down);
        // Half a second of work, as in a fleet of `stagger advise`.
        let backlog = (rate / 2.0).ceil() as u32;
        let builder = ReconnectScenario::builder(CLIENTS).rate(rate).backlog(backlog).down_for(outage);
        let scenario = builder.first_attempt(first).build()?;
        Ok(Cell { scenario: Scenario::Fleet { scenario, outage, peak_from } })
    });
    cells.collect()
}

fn traffic() -> Result<Vec<Cell>, ScenarioError> {
    let kinds = [OutageKind::Reject, OutageKind::Stall];
    let each = kinds.iter().flat_map(|kind| LOADS.iter().map(move |load| (*kind, *load)));
    let each = each.flat_map(|(kind, load)| CALL_OUTAGES.iter().map(move |down| (kind, load, *down)));
    let cells = each.map(|(kind, load, down)| {
        let scenario = OutageScenario::builder(load * CAPACITY)
            .capacity(CAPACITY)
            // Three seconds of work, and callers who wait for one.
            .queue((3.0 * CAPACITY) as u32)
            .outage(kind, Duration::from_secs(BEFORE), Duration::from_secs(down))
            .horizon(Duration::from_secs(BEFORE + down + AFTER))
            .build()?;
        Ok(Cell { scenario: Scenario::Traffic { scenario } })
    });
    cells.collect()
}

impl Cell {
    fn figures(&self, policy: &Policy, seed: Seed) -> Figures {
        let (peak, recovery, attempts, served) = match &self.scenario {
            Scenario::Fleet { scenario, outage, peak_from } => {
                let run = scenario.run(policy, seed);
                let peak = run.arrivals.peak_over(10, *peak_from) as f64 / scenario.rate();
                let recovery = run.t99.map(|time| time.saturating_sub(*outage));
                (peak, recovery, run.attempts_per_client(), run.connected as f64 / run.clients as f64)
            }
            Scenario::Traffic { scenario } => {
                let run = scenario.run(policy, |_| ProcessGuards::none(), seed);
                (run.peak_second() as f64 / CAPACITY, run.recovery(), run.amplification(), run.success_ratio())
            }
        };
        let recovery = recovery.map_or(NEVER, |time| time.as_secs_f64());
        Figures {
            peak: peak.max(1.0),
            recovery: recovery.max(1.0),
            attempts: attempts.max(1.0),
            lost: 1.0 - served,
            alone: 0.0,
            told: 0.0,
            crowd: 0.0,
        }
    }
}

/// Returns the mean wait before the first attempt after a single failure.
fn alone(policy: &Policy) -> f64 {
    match policy.max_attempts() {
        Some(most) if most.get() < 2 => NEVER,
        _ if !policy.spread().is_zero() => policy.spread().as_secs_f64() / 2.0,
        _ => policy.mean(1).map_or(NEVER, |wait| wait.as_secs_f64()),
    }
}

/// Returns the mean time until the last attempt.
fn told(policy: &Policy) -> f64 {
    let retries = policy.max_attempts().map(|most| most.get().saturating_sub(1));
    retries.and_then(|retries| policy.elapsed_mean(retries)).map_or(NEVER, |time| time.as_secs_f64())
}

/// Returns the share of calls that are lost in a failure that hits every other attempt, and in one of a second. A call
/// is served if its last attempt comes later than that; the policies in question make it sooner.
fn lost(policy: &Policy) -> f64 {
    let attempts = policy.max_attempts().map_or(f64::INFINITY, |most| f64::from(most.get()));
    (0.5_f64.powf(attempts) + (1.0 - told(policy)).max(0.0)) / 2.0
}

/// Returns the largest share of the first retries within a millisecond.
fn crowd(policy: &Policy) -> f64 {
    let width = policy.bounds(1).map_or(0.0, |(least, most)| most.saturating_sub(least).as_secs_f64() * 1e3);
    if width > 1.0 { 1.0 / width } else { 1.0 }
}

impl Figures {
    /// Returns the figures in the order of their declaration.
    pub(crate) const fn all(&self) -> [f64; 7] {
        [self.peak, self.recovery, self.attempts, self.lost, self.alone, self.told, self.crowd]
    }

    /// Returns the sum by which `stagger advise` orders policies, too: the logarithms of peak and recovery, half of
    /// that of the attempts, and the share that is lost.
    pub(crate) fn cost(&self) -> f64 {
        self.peak.ln() + self.recovery.ln() + 0.5 * self.attempts.ln() + self.lost
    }
}
