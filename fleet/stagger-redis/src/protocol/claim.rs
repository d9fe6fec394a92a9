/// What a report says about one quiet period. Lengths are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PauseClaim {
    /// For how long the server has told this process to wait, if the fleet does not know of it.
    pub(crate) told: u64,
    /// For how long this process has decided to wait, if the fleet does not know of it.
    pub(crate) decided: u64,
    /// The longest pause.
    pub(crate) longest: u64,
    pub(crate) calls: Calls,
    /// Whether calls wait, or were rejected since the last report.
    pub(crate) is_wanted: bool,
}

/// What the calls of a process do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Calls {
    /// None starts.
    Held,
    /// One was sent as a probe.
    Probing,
    /// They start.
    Starting,
}

/// The store's reply about one quiet period. Lengths are microseconds from the reply on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PauseReply {
    /// The rest of the pause of the fleet.
    pub(crate) left: u64,
    /// For how long this process shall hold its calls.
    pub(crate) wait: u64,
}
