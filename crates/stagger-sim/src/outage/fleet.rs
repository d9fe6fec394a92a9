//! Budgets that the processes of a fleet share through a store: what a simulation tells them, and what it is told.

use core::fmt::Debug;
use core::time::Duration;
use std::sync::Arc;

use stagger_core::{Budget, Instant, Ratio, Seed};

use super::ProcessGuards;
use crate::engine::time::{instant, micros};

/// A budget that the processes of a simulated fleet share, such as `LeasedTokens` of `stagger-lease`.
///
/// The simulation has the calls; the budget has what lies between the processes and their store: messages that take time, a
/// store that is away or loses its data, and processes that cannot reach it.
pub trait FleetBudget: Debug + Send + Sync {
    /// Starts the budget for one run.
    fn start(&self, conditions: &FleetConditions) -> Box<dyn FleetRun>;
}

/// A [`FleetBudget`] in the course of a run. Times are those of the simulation, which starts at [`Instant::ZERO`].
pub trait FleetRun: Debug {
    /// Returns the budget of a process as its calls see it; `None` if it does not [share](FleetConditions::shares) it. Called
    /// once for each process, before the first event.
    fn budget(&self, process: u32) -> Option<Arc<dyn Budget>>;

    /// Handles everything between the processes and the store up to `now`. Called before each event of the simulation.
    fn advance(&mut self, now: Instant);

    /// Notes that a call of this process may have spent or earned something. Called after each event of the simulation.
    fn on_call(&mut self, process: u32, now: Instant);

    /// Returns the figures at the end of the run.
    fn figures(self: Box<Self>) -> LeaseFigures;
}

/// What a [`FleetBudget`] is told about a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FleetConditions {
    /// For each process, whether it shares the budget.
    pub shares: Vec<bool>,
    /// What happens to the store.
    pub faults: StoreFaults,
    /// One-way delay of a message.
    pub one_way: Duration,
    /// How long the processes have shared the budget when the simulation starts.
    pub begun: Duration,
    /// End of the simulation.
    pub horizon: Duration,
    /// Seed of what is random.
    pub seed: Seed,
}

/// The budget of a fleet in a run, if there is one.
#[derive(Debug)]
pub(crate) struct Fleet(Option<Box<dyn FleetRun>>);

impl Fleet {
    /// Starts the budget that the processes share, and gives each its part. `begun` and `horizon` are in microseconds, like
    /// all times here.
    pub(crate) fn start(
        processes: &mut [ProcessGuards],
        faults: StoreFaults,
        one_way: u64,
        begun: u64,
        horizon: u64,
        seed: Seed,
    ) -> Self {
        // All processes have the same settings.
        let Some(budget) = processes.iter().find_map(|process| process.shared.clone()) else {
            return Self(None);
        };
        let conditions = FleetConditions {
            shares: processes.iter().map(|process| process.shared.is_some()).collect(),
            faults,
            one_way: Duration::from_micros(one_way),
            begun: Duration::from_micros(begun),
            horizon: Duration::from_micros(horizon),
            seed,
        };
        let run = budget.start(&conditions);
        for (id, process) in processes.iter_mut().enumerate() {
            process.share = run.budget(id as u32);
        }
        Self(Some(run))
    }

    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        if let Some(run) = &mut self.0 {
            run.advance(instant(now));
        }
    }

    #[inline]
    pub(crate) fn on_call(&mut self, process: u32, now: u64) {
        if let Some(run) = &mut self.0 {
            run.on_call(process, instant(now));
        }
    }

    pub(crate) fn figures(self) -> Option<LeaseFigures> {
        self.0.map(|run| run.figures())
    }
}

/// What became of a budget that a fleet shared by leases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LeaseFigures {
    /// Number of processes that share the budget.
    pub processes: u32,
    /// How far a single bucket would have fallen below zero that pays for every retry of the fleet, as a ratio of its capacity.
    pub overshoot: f64,
    /// The most that the overshoot may be: what the faults of the scenario may cost, as the documentation of `stagger-redis` says,
    /// and what successes earned before they were reported.
    pub overshoot_bound: f64,
    /// Number of reports that the store had to answer before the horizon, lost ones included.
    pub reports: u64,
    /// Maximum number of reports of a process before the horizon: at most one per second, and three more.
    pub reports_max: u64,
    /// Maximum number of processes that used their local share at the same time.
    pub local_max: u32,
    /// Time from the end of the last fault of the store until all processes had leases again; `None` if there was no fault, or if
    /// that was not before the horizon.
    pub restored: Option<Duration>,
}

/// What happens to the store of a fleet's budget, and to the network between it and the processes. Default: nothing.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::Ratio;
/// use stagger_sim::outage::StoreFaults;
///
/// let at = Duration::from_secs;
/// // Away from 25 s to 40 s, and empty when it is back; a third of the processes cannot reach it from 50 s to 60 s.
/// let faults = StoreFaults::none().lost(at(25), at(40)).cut(Ratio::percent(33), at(50), at(60));
/// # let _ = faults;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct StoreFaults {
    /// In microseconds, like the following times.
    pub(crate) down: Option<[u64; 2]>,
    pub(crate) is_lost: bool,
    pub(crate) cut: Option<[u64; 2]>,
    pub(crate) cut_ratio: Ratio,
}

impl StoreFaults {
    /// Creates faults that do nothing.
    pub const fn none() -> Self {
        Self { down: None, is_lost: false, cut: None, cut_ratio: Ratio::ZERO }
    }

    /// Lets no process reach the store between two times. It returns with its data.
    pub const fn down(self, from: Duration, until: Duration) -> Self {
        Self { down: Some([micros(from), micros(until)]), is_lost: false, ..self }
    }

    /// Lets no process reach the store between two times. It returns without its data.
    pub const fn lost(self, from: Duration, until: Duration) -> Self {
        Self { down: Some([micros(from), micros(until)]), is_lost: true, ..self }
    }

    /// Cuts this share of the processes off the store between two times, while it serves the others.
    pub const fn cut(self, share: Ratio, from: Duration, until: Duration) -> Self {
        Self { cut: Some([micros(from), micros(until)]), cut_ratio: share, ..self }
    }

    /// Returns whether each fault ends after it begins, and before the horizon.
    pub(crate) fn are_within(&self, horizon: u64) -> bool {
        [self.down, self.cut].into_iter().flatten().all(|[from, until]| from < until && until <= horizon)
            && self.cut_ratio <= Ratio::ONE
    }

    /// Returns when no process can reach the store.
    #[must_use]
    pub fn down_time(&self) -> Option<[Duration; 2]> {
        self.down.map(|times| times.map(Duration::from_micros))
    }

    /// Returns whether the store loses its data while it is away.
    #[must_use]
    pub const fn loses_data(&self) -> bool {
        self.is_lost
    }

    /// Returns when a share of the processes cannot reach the store.
    #[must_use]
    pub fn cut_time(&self) -> Option<[Duration; 2]> {
        self.cut.map(|times| times.map(Duration::from_micros))
    }

    /// Returns the share of the processes that is cut off.
    #[must_use]
    pub const fn cut_ratio(&self) -> Ratio {
        self.cut_ratio
    }
}
