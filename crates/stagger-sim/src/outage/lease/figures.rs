use core::time::Duration;

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
