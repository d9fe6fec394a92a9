use core::time::Duration;

/// The outcome of an attempt, as far as retrying is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The attempt succeeded.
    Success,
    /// The attempt failed, and another one may succeed.
    Failed {
        /// The kind of failure.
        kind: FailureKind,
        /// The server's hint, if it sent one.
        hint: Option<ServerHint>,
    },
    /// The attempt failed, and a retry would fail again: the server answered and rejected the request.
    Permanent,
    /// The attempt failed in a way that may be temporary, but it must not be retried: it may have been carried out, and
    /// must not be carried out twice (a payment whose response was lost), or it cannot be made again (a request whose
    /// body was a stream). The guards count it as the failure that it is.
    UnsafeToRetry {
        /// The kind of failure.
        kind: FailureKind,
        /// The server's hint, if it sent one. The call does not follow it, but a guard may: it can be meant for others.
        hint: Option<ServerHint>,
    },
    /// The request was certainly not processed: a refused stream, a connection that the server closed before reading
    /// the request, a dead pooled connection. The attempt is repeated at once, once per call, and the repeat is not
    /// counted.
    ///
    /// A refused *connection* is different: it is transient and waits for its delay. Otherwise the first thing that a
    /// dead server meets is a second wave.
    NotProcessed,
    /// The caller cancelled the attempt. Guards count it neither as success nor as failure.
    Cancelled,
}

impl Outcome {
    /// A transient failure without a hint.
    pub const TRANSIENT: Self = Self::Failed { kind: FailureKind::Transient, hint: None };

    /// Creates a failure of an overloaded server, with its hint.
    #[must_use]
    pub const fn throttled(hint: Option<ServerHint>) -> Self {
        Self::Failed { kind: FailureKind::Throttled, hint }
    }

    /// Returns what the outcome says about the health of the server.
    ///
    /// | outcome | verdict |
    /// |---|---|
    /// | `Success`, `Permanent` (the server answered) | `Healthy` |
    /// | `Failed` and `UnsafeToRetry` with `Transient` or `Throttled` | `Ailing` |
    /// | `Failed` and `UnsafeToRetry` with `LocalExhaustion`, `NotProcessed`, `Cancelled` | `Unknown` |
    #[inline]
    #[must_use]
    pub const fn verdict(&self) -> ServerHealth {
        match self {
            Self::Success | Self::Permanent => ServerHealth::Healthy,
            Self::Failed { kind, .. } | Self::UnsafeToRetry { kind, .. } => match kind {
                FailureKind::Transient | FailureKind::Throttled => ServerHealth::Ailing,
                FailureKind::LocalExhaustion => ServerHealth::Unknown,
            },
            Self::NotProcessed | Self::Cancelled => ServerHealth::Unknown,
        }
    }
}

/// What an outcome says about the health of the server. Guards count by it.
///
/// Complete: there is no fourth conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerHealth {
    /// The server answered.
    Healthy,
    /// The server did not answer, or reported that it is overloaded.
    Ailing,
    /// Nothing can be concluded.
    Unknown,
}

/// The kind of a failure that may be temporary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The next attempt may succeed: connection reset, timeout, 503.
    #[default]
    Transient,
    /// The server is overloaded or limits the client's rate: 429, `ThrottlingException`. The delay starts at
    /// `throttled_base`.
    Throttled,
    /// The client has exhausted a resource of its own: file descriptors, ports, buffers, the connection pool. It is
    /// never counted against the server. The delay starts at `local_base`.
    LocalExhaustion,
}

/// A delay that the server asked for: `Retry-After`, `retry-after-ms`, `grpc-retry-pushback-ms`, the close codes 1012
/// and 1013, the reset time of a rate limit.
///
/// # Exact hints
///
/// A hint is exact if the retry waits as long as it says, with nothing added: a [reservation](Self::Reserved), and with
/// [`HintMode::Exact`](crate::HintMode::Exact) every hint. A server that asks for a retry at once, again and again,
/// would cause a tight loop. So exact hints make three waits in a row shorter than the delays that the policy draws
/// from its schedule or its spread, and the next one is a minimum: that wait is the larger of the hint and the drawn
/// delay. Of any four waits in a row, one is as long as the policy draws it. Hints cause at most four attempts where
/// the policy alone causes one.
///
/// | | the count |
/// |---|---|
/// | an exact hint shorter than the drawn delay | one more; at the fourth the drawn delay, and 0 |
/// | an exact hint as long or longer, which is always kept | 0 |
/// | any other wait: without a hint, or with one that is a minimum | 0 |
/// | a new episode: the loss of a stable connection, [`reset`](crate::machine::RetryMachine::reset) | 0 |
/// | an immediate repeat, an opened connection, a [pause](crate::machine::Paused) | unchanged |
///
/// The clients of an [admission](crate::admission::Admission) need one exact hint each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerHint {
    /// Retry no earlier than after this delay. The server may have sent the same delay to every client.
    ///
    /// With the default [`HintMode::AtLeast`](crate::HintMode::AtLeast) the retry waits
    /// `hint + U[0, max(ceiling, hint · hint_spread)]`. It never comes earlier than the hint, and clients that received
    /// the same hint do not retry at the same time.
    AtLeast(Duration),
    /// A reservation: a point in time that the server reserved for this client alone. The retry waits exactly this
    /// long, to the timer's tick, with nothing added.
    ///
    /// Three waits in a row may be shorter for it than the policy's own delays; the next is not, so that a server which
    /// asks for a retry at once, again and again, causes no tight loop. See
    /// [exact hints](crate::ServerHint#exact-hints).
    Reserved(Duration),
    /// Do not retry.
    DoNotRetry,
}
