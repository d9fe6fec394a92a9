use core::time::Duration;

/// Receives the events of a fleet.
pub(crate) type Listener = Box<dyn Fn(&FleetEvent) + Send + Sync>;

/// What has happened between this process and the store. Each is reported
/// once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FleetEvent {
    /// There was no reply until the leases ended. Each guard uses its local share from now on.
    StoreLost {
        /// The last error, in words.
        reason: String,
    },
    /// The store has replied again. Guards have leases from now on.
    StoreRestored {
        /// How long the local shares were used.
        after: Duration,
    },
    /// Operator controls were set for the fleet, and are in force in this process.
    ControlsChanged {
        /// The note of the change: its time, author and reason.
        note: String,
    },
    /// Operator controls were set for the fleet that this process cannot apply. The former stay in force.
    ControlsRejected {
        /// What is wrong with them.
        reason: String,
    },
    /// The time of the operator controls is over: every target is enforced.
    ControlsEnded,
    /// Enough processes have their circuit breaker open: that of this process now needs half of the evidence.
    BreakerAdvised {
        /// The target of the breaker.
        target: String,
        /// How many processes have theirs open.
        open: u64,
    },
    /// The fleet has a pause: a process was told to wait, and now this one knows.
    Paused {
        /// The target of the quiet period.
        target: String,
        /// How long the pause still lasts.
        remaining: Duration,
    },
}
