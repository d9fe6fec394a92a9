//! What is measured: tables, their rows, and how each row runs.

use crate::measure::Sizes;

/// One table of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Table {
    /// The next delay.
    Delay,
    /// A blocking call that succeeds on its first attempt.
    Blocking,
    /// An async call that succeeds on its first attempt.
    Future,
    /// An async call that succeeds on its first attempt, awaited in a task.
    Awaited,
    /// Three failures, blocking; delays are drawn but not slept.
    FailuresBlocking,
    /// Three failures, blocking; no delay is drawn.
    FailuresZero,
    /// Three failures, async, with a sleeper that is ready immediately.
    FailuresReady,
    /// Three failures, async on tokio, zero delays: CPU work with the clock paused.
    FailuresTokio,
    /// Three failures, async on tokio, zero delays: wall-clock time.
    FailuresTokioReal,
    /// The cost of a guard for a call that succeeds.
    GuardsSuccess,
    /// The cost of a guard for a failure and for a retry request.
    GuardsFailure,
    /// A million pending retries: one becomes due and is rescheduled.
    PendingDue,
    /// A million pending retries: one is cancelled and another is scheduled.
    PendingCancelled,
    /// A tower layer; requests without a body.
    LayerGet,
    /// A tower layer; requests with a body.
    LayerPut,
    /// A reqwest middleware.
    Middleware,
    /// Round trip of a short WebSocket message over a pipe.
    PipeShort,
    /// Round trip of a long WebSocket message over a pipe.
    PipeLong,
    /// Round trip of a short WebSocket message over TCP.
    SocketShort,
    /// Round trip of a long WebSocket message over TCP.
    SocketLong,
    /// Opening a WebSocket, and the memory of an idle one.
    SocketIdle,
    /// Rejecting an upgrade.
    SocketRejected,
}

impl Table {
    pub(crate) const ALL: [Self; 22] = [
        Self::Delay,
        Self::Blocking,
        Self::Future,
        Self::Awaited,
        Self::FailuresBlocking,
        Self::FailuresZero,
        Self::FailuresReady,
        Self::FailuresTokio,
        Self::FailuresTokioReal,
        Self::GuardsSuccess,
        Self::GuardsFailure,
        Self::PendingDue,
        Self::PendingCancelled,
        Self::LayerGet,
        Self::LayerPut,
        Self::Middleware,
        Self::PipeShort,
        Self::PipeLong,
        Self::SocketShort,
        Self::SocketLong,
        Self::SocketIdle,
        Self::SocketRejected,
    ];

    pub(crate) const fn section(self) -> Section {
        match self {
            Self::Delay => Section::A,
            Self::Blocking => Section::B,
            Self::Future | Self::Awaited => Section::C,
            Self::FailuresBlocking
            | Self::FailuresZero
            | Self::FailuresReady
            | Self::FailuresTokio
            | Self::FailuresTokioReal => Section::D,
            Self::GuardsSuccess | Self::GuardsFailure => Section::E,
            Self::PendingDue | Self::PendingCancelled => Section::F,
            Self::LayerGet | Self::LayerPut | Self::Middleware => Section::H,
            Self::PipeShort
            | Self::PipeLong
            | Self::SocketShort
            | Self::SocketLong
            | Self::SocketIdle
            | Self::SocketRejected => Section::J,
        }
    }

    /// Returns whether the cases run on a runtime with a paused clock.
    pub(crate) const fn pauses_clock(self) -> bool {
        matches!(self, Self::FailuresTokio) || self.is_in_bulk()
    }

    /// Returns whether the cases operate on a million entries.
    pub(crate) const fn is_in_bulk(self) -> bool {
        matches!(self.section(), Section::F)
    }

    /// Returns whether the cases use an object that threads share. Those are timed with two threads as well.
    pub(crate) const fn is_shared(self) -> bool {
        matches!(self.section(), Section::E)
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Delay => "A. Next delay (exponential with jitter; sessions of 8, setup included)",
            Self::Blocking => "B. Blocking, success on the first attempt",
            Self::Future => "C. Async, success on the first attempt (no-op waker), and the size of the future",
            Self::Awaited => "C. Async, success on the first attempt, awaited in a loop on tokio",
            Self::FailuresBlocking => "D. Three failures, then success: blocking, delays drawn but not slept",
            Self::FailuresZero => "D. Three failures, then success: blocking, no delay drawn",
            Self::FailuresReady => "D. Three failures, then success: async, sleeper ready immediately",
            Self::FailuresTokio => {
                "D. Three failures, then success: async on tokio, zero delays, paused clock (CPU work)"
            }
            Self::FailuresTokioReal => {
                "D. Three failures, then success: async on tokio, zero delays, real clock (wall-clock time)"
            }
            Self::GuardsSuccess => {
                "E. Guards: cost of a successful call, with one thread and with two on the same object"
            }
            Self::GuardsFailure => {
                "E. Guards: cost of a failure or a retry, with one thread and with two on the same object"
            }
            Self::PendingDue => "F. A million pending retries: one becomes due and is rescheduled",
            Self::PendingCancelled => "F. A million pending retries: one is cancelled and another is scheduled",
            Self::LayerGet => "H. HTTP, answered immediately: tower layer, no body",
            Self::LayerPut => "H. HTTP, answered immediately: tower layer, body of 1 KiB",
            Self::Middleware => "H. HTTP, answered immediately: reqwest middleware",
            Self::PipeShort => "J. WebSocket over a pipe: round trip of 64 bytes, both ends counted",
            Self::PipeLong => "J. WebSocket over a pipe: round trip of 4 KiB, both ends counted",
            Self::SocketShort => "J. WebSocket over loopback: round trip of 64 bytes, both ends counted",
            Self::SocketLong => "J. WebSocket over loopback: round trip of 4 KiB, both ends counted",
            Self::SocketIdle => "J. WebSocket over a pipe: open and drop, and the memory of 2,000 idle connections",
            Self::SocketRejected => {
                "J. WebSocket over a pipe: a rejected upgrade, and the memory of 2,000 clients that never reply"
            }
        }
    }
}

/// A section of the report, which groups tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[value(rename_all = "upper")]
pub(crate) enum Section {
    /// The next delay.
    A,
    /// Blocking calls that succeed on the first attempt.
    B,
    /// Async calls that succeed on the first attempt.
    C,
    /// Three failures, then a success.
    D,
    /// Guards.
    E,
    /// A million pending retries.
    F,
    /// Number of crates, build time and size.
    G,
    /// HTTP requests that are answered immediately.
    H,
    /// WebSockets.
    J,
}

/// The group that a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// The operation itself, without retries.
    Bare,
    /// Hand-written code that does only the necessary work: a lower bound.
    Floor,
    /// This project.
    Stagger,
    /// Another crate.
    #[cfg_attr(not(any(test, feature = "peers")), expect(dead_code, reason = "no other crate is measured"))]
    Peer,
}

/// How a case is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Run {
    /// Runs the operation the given number of times; time, instructions and allocations are measured.
    Work(fn(u64)),
    /// Runs the operation the given number of times; only time is measured, because instructions say nothing about
    /// waiting.
    Wait(fn(u64)),
    /// Cannot be measured, with the reason.
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "only other crates lack a case"))]
    Absent(&'static str),
}

/// One row of one table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) table: Table,
    pub(crate) role: Role,
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    pub(crate) sizes: Option<fn() -> Sizes>,
    /// Number of entries that the case keeps in memory; the memory per entry is measured.
    pub(crate) entries: Option<u64>,
    pub(crate) note: &'static str,
}

impl Case {
    pub(crate) const fn work(table: Table, role: Role, name: &'static str, run: fn(u64)) -> Self {
        Self::new(table, role, name, Run::Work(run))
    }

    pub(crate) const fn wait(table: Table, role: Role, name: &'static str, run: fn(u64)) -> Self {
        Self::new(table, role, name, Run::Wait(run))
    }

    #[cfg(feature = "peers")]
    pub(crate) const fn absent(table: Table, name: &'static str, why: &'static str) -> Self {
        Self::new(table, Role::Peer, name, Run::Absent(why))
    }

    pub(crate) const fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }

    pub(crate) const fn sized(mut self, sizes: fn() -> Sizes) -> Self {
        self.sizes = Some(sizes);
        self
    }

    pub(crate) const fn keeping(mut self, entries: u64) -> Self {
        self.entries = Some(entries);
        self
    }

    /// Returns the name that selects the case in a separate process.
    pub(crate) fn id(&self) -> String {
        format!("{:?}/{:?}/{}", self.table, self.role, self.name)
    }

    const fn new(table: Table, role: Role, name: &'static str, run: Run) -> Self {
        Self { table, role, name, run, sizes: None, entries: None, note: "" }
    }
}
