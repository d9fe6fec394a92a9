use crate::controls::obeyed::ControlsReply;
use crate::quiet::claim::PauseReply;

/// Counters are reported modulo 2^52, which Lua's numbers hold exactly. The store computes differences modulo the same.
pub(crate) const WRAP: u64 = 1 << 52;

/// One second in microseconds.
pub(crate) const SECOND: u64 = 1_000_000;

/// The limits of a token bucket for the fleet, in millionths of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Limits {
    pub(crate) capacity: u64,
    /// Per second.
    pub(crate) refill: u64,
    pub(crate) initial: u64,
    pub(crate) cost: u64,
    pub(crate) reward: u64,
}

/// How often a process reports, and how long its leases last, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Timing {
    pub(crate) period: u64,
    pub(crate) lease: u64,
    /// How long a process that never had a reply waits for one before it uses its local share.
    pub(crate) patience: u64,
}

impl Timing {
    /// The timing of the protocol: a report each second, leases of three.
    pub(crate) const DEFAULT: Self = Self { period: SECOND, lease: 3 * SECOND, patience: SECOND };
}

/// What a report says about the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Report {
    /// Above all earlier ones of the process.
    pub(crate) number: u64,
    /// The store's time that the process expects; `None` before the first reply.
    pub(crate) expected: Option<u64>,
    /// Whether the store shall accept its clock although the process expects another time.
    pub(crate) resync: bool,
}

/// What a report says about one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Claim {
    /// The bucket of the last reply; 0 if there was none.
    pub(crate) epoch: u64,
    /// Modulo [`WRAP`].
    pub(crate) spent: u64,
    /// Modulo [`WRAP`].
    pub(crate) earned: u64,
    pub(crate) held: u64,
    /// `None` if the process leaves.
    pub(crate) want: Option<u64>,
    pub(crate) limits: Limits,
}

/// The reply to a report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    /// The store's clock is not what the process expects: report again.
    Again,
    /// The store's time, and what it says about each target; `None` if the report was old.
    Done {
        /// In microseconds.
        now: u64,
        /// In the order of the claims.
        leases: Vec<Option<Lease>>,
        /// The processes of the namespace, if there is a quiet period.
        processes: u64,
        /// In the order of the claims.
        pauses: Vec<PauseReply>,
        controls: Option<ControlsReply>,
    },
}

/// What a process has on one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    pub(crate) epoch: u64,
    /// What the process may hold, of which it has claimed a part.
    pub(crate) tokens: u64,
    /// The processes that have a lease, or have reported lately.
    pub(crate) processes: u64,
    /// What is left for all; negative if the fleet has a debt.
    pub(crate) left: i64,
}
