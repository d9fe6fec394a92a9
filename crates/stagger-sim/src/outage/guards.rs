//! The guards of client processes, and the budgets that the processes of a fleet share through a store.

use core::fmt::Debug;
use core::time::Duration;
use std::sync::Arc;

use stagger_core::breaker::CircuitBreaker;
use stagger_core::budget::{SuccessRate, Throttle, Tokens, Window};
use stagger_core::guard::Guard;
use stagger_core::{Guards, Instant, Ratio, Seed};

use crate::engine::{instant, micros};

/// The guards of one client process, in the order in which they are asked, as in a
/// [retrier](stagger_core::Guards).
///
/// ```
/// use stagger_core::budget::Tokens;
/// use stagger_core::quiet::QuietPeriod;
/// use stagger_sim::outage::ProcessGuards;
///
/// let process = ProcessGuards::none().guard(QuietPeriod::new()).budget(Tokens::new());
/// # let _ = process;
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct ProcessGuards {
    list: Vec<Arc<dyn Guard>>,
    /// A budget that the process shares with others.
    shared: Option<Arc<dyn FleetBudget>>,
}

impl ProcessGuards {
    /// Creates guards of which there are none.
    pub const fn none() -> Self {
        Self { list: Vec::new(), shared: None }
    }

    /// Adds a guard behind the others.
    pub fn guard(mut self, guard: impl Guard + 'static) -> Self {
        self.list.push(Arc::new(guard));
        self
    }

    /// Adds a retry budget: [`guard`](Self::guard) by another name.
    pub fn budget(self, budget: impl Guard + 'static) -> Self {
        self.guard(budget)
    }

    /// Adds a circuit breaker: [`guard`](Self::guard) by another name.
    pub fn breaker(self, breaker: impl Guard + 'static) -> Self {
        self.guard(breaker)
    }

    /// Adds a budget that the process shares with all others that have one, as the last guard. All processes have the
    /// same settings.
    pub fn shared(self, budget: impl FleetBudget + 'static) -> Self {
        Self { shared: Some(Arc::new(budget)), ..self }
    }

    /// Returns the guards, as [`RetryMachine`](stagger_core::machine::RetryMachine) takes them.
    #[inline]
    #[must_use]
    pub fn guards(&self) -> Guards<'_, Arc<dyn Guard>> {
        Guards::of(&self.list)
    }

    /// Returns whether there is no guard.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.shared.is_none()
    }
}

/// Guards with their default settings, as the linter and the advisor of `stagger-lint` try and recommend them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DefaultGuards {
    /// No guards.
    None,
    /// `Tokens::new()`: an allowance that successes refill.
    Tokens,
    /// `Window::new()`: a share of the recent calls.
    Window,
    /// `Throttle::new(10, Ratio::percent(10))`: the example of gRPC proposal A6.
    Throttle,
    /// `SuccessRate::new()`: retries only while most attempts succeed.
    SuccessRate,
    /// No budget, but `CircuitBreaker::new(seed)`.
    Breaker,
}

impl DefaultGuards {
    /// All guards, in the order in which they are tried: of those that do equally well, the first is recommended.
    pub const TRIED: [Self; 5] = [Self::Tokens, Self::Window, Self::Throttle, Self::SuccessRate, Self::Breaker];

    /// Returns the name that `stagger simulate outage --guards` and `stagger check --budget` take: `tokens`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tokens => "tokens",
            Self::Window => "window",
            Self::Throttle => "throttle",
            Self::SuccessRate => "success-rate",
            Self::Breaker => "breaker",
        }
    }

    /// Returns the method call that adds the guards to a retrier, as Rust code: `.budget(Tokens::new())`.
    #[must_use]
    pub const fn rust_code(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Tokens => ".budget(Tokens::new())",
            Self::Window => ".budget(Window::new())",
            Self::Throttle => ".budget(Throttle::new(10, Ratio::percent(10))?)",
            Self::SuccessRate => ".budget(SuccessRate::new())",
            Self::Breaker => ".breaker(CircuitBreaker::new(stagger::seed()))",
        }
    }

    /// Creates the guards of a process, with this seed for guards that use randomness.
    pub fn process(self, seed: Seed) -> ProcessGuards {
        let none = ProcessGuards::none();
        match self {
            Self::None => none,
            Self::Tokens => none.budget(Tokens::new()),
            Self::Window => none.budget(Window::new()),
            Self::Throttle => match Throttle::new(10, Ratio::percent(10)) {
                Ok(throttle) => none.budget(throttle),
                Err(_) => none,
            },
            Self::SuccessRate => none.budget(SuccessRate::new()),
            Self::Breaker => none.breaker(CircuitBreaker::new(seed)),
        }
    }
}

/// A budget that the processes of a simulated fleet share, such as `LeasedTokens` of `stagger-lease`.
///
/// The simulation has the calls; the budget has what lies between the processes and their store: messages that take
/// time, a store that is away or loses its data, and processes that cannot reach it.
pub trait FleetBudget: Debug + Send + Sync {
    /// Starts the budget for one run.
    fn start(&self, conditions: &FleetConditions) -> Box<dyn FleetRun>;
}

/// A [`FleetBudget`] in the course of a run. Times are those of the simulation, which starts at [`Instant::ZERO`].
pub trait FleetRun: Debug {
    /// Returns the budget of a process as its calls see it; `None` if it does not [share](FleetConditions::shares) it.
    /// Called once for each process, before the first event.
    fn budget(&self, process: u32) -> Option<Arc<dyn Guard>>;

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
    /// Starts the budget that the processes share, and gives each its part. `begun` and `horizon` are in microseconds,
    /// like all times here.
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
            process.list.extend(run.budget(id as u32));
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
    /// How far a single bucket would have fallen below zero that pays for every retry of the fleet, as a ratio of its
    /// capacity.
    pub overshoot: f64,
    /// The most that the overshoot may be: what the faults of the scenario may cost, as the documentation of
    /// `stagger-redis` says, and what successes earned before they were reported.
    pub overshoot_bound: f64,
    /// Number of reports that the store had to answer before the horizon, lost ones included.
    pub reports: u64,
    /// Maximum number of reports of a process before the horizon: at most one per second, and three more.
    pub reports_max: u64,
    /// Maximum number of processes that used their local share at the same time.
    pub local_max: u32,
    /// Time from the end of the last fault of the store until all processes had leases again; `None` if there was no
    /// fault, or if that was not before the horizon.
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
