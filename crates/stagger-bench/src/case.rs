//! One thing to measure.

use crate::sizes::Sizes;

/// One table of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Table {
    /// One next delay.
    Delay,
    /// A blocking call that succeeds at once.
    Blocking,
    /// An async call that succeeds at once.
    Future,
    /// Three failures, blocking, delays drawn and not slept.
    FailuresBlocking,
    /// Three failures, blocking, no delay to draw.
    FailuresZero,
    /// Three failures, async, a sleeper that is ready at once.
    FailuresReady,
    /// Three failures, async, tokio, zero delays: the work, with the clock paused.
    FailuresTokio,
    /// Three failures, async, tokio, zero delays: the time that passes.
    FailuresTokioReal,
    /// What a guard adds to a call that succeeds.
    GuardsSuccess,
    /// What a guard adds to a failure, and to asking for a retry.
    GuardsFailure,
    /// A million pending retries, of which one is due, and waits again.
    PendingDue,
    /// A million pending retries, of which one is cancelled, and another taken in.
    PendingCancelled,
    /// A tower layer, and a request without a body.
    LayerGet,
    /// A tower layer, and a request with a body.
    LayerPut,
    /// A middleware for reqwest.
    Middleware,
    /// A short message over a WebSocket, there and back over a pipe.
    PipeShort,
    /// A long one.
    PipeLong,
    /// A short message over a WebSocket, there and back over TCP.
    SocketShort,
    /// A long one.
    SocketLong,
    /// Opening a WebSocket, and what an idle one takes.
    SocketIdle,
}

impl Table {
    pub(crate) const ALL: [Self; 20] = [
        Self::Delay,
        Self::Blocking,
        Self::Future,
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
    ];

    pub(crate) const fn section(self) -> Section {
        match self {
            Self::Delay => Section::A,
            Self::Blocking => Section::B,
            Self::Future => Section::C,
            Self::FailuresBlocking
            | Self::FailuresZero
            | Self::FailuresReady
            | Self::FailuresTokio
            | Self::FailuresTokioReal => Section::D,
            Self::GuardsSuccess | Self::GuardsFailure => Section::E,
            Self::PendingDue | Self::PendingCancelled => Section::F,
            Self::LayerGet | Self::LayerPut | Self::Middleware => Section::H,
            Self::PipeShort | Self::PipeLong | Self::SocketShort | Self::SocketLong | Self::SocketIdle => Section::J,
        }
    }

    /// Whether its cases run on a runtime whose clock stands still.
    pub(crate) const fn pauses_clock(self) -> bool {
        matches!(self, Self::FailuresTokio) || self.is_in_bulk()
    }

    /// Whether it is about something done to a million entries.
    pub(crate) const fn is_in_bulk(self) -> bool {
        matches!(self.section(), Section::F)
    }

    /// Whether its cases work on what threads share, and are timed with two of them at once as well.
    pub(crate) const fn is_shared(self) -> bool {
        matches!(self.section(), Section::E)
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Delay => "A. One next delay (exponential with jitter; sessions of 8, set-up included)",
            Self::Blocking => "B. Blocking, success at once",
            Self::Future => "C. Async, success at once (no-op waker), and the size of the future",
            Self::FailuresBlocking => "D. Three failures, then success: blocking, delays drawn, none slept",
            Self::FailuresZero => "D. Three failures, then success: blocking, no delay to draw",
            Self::FailuresReady => "D. Three failures, then success: async, sleeper ready at once",
            Self::FailuresTokio => "D. Three failures, then success: async on tokio, zero delays, clock paused (work)",
            Self::FailuresTokioReal => {
                "D. Three failures, then success: async on tokio, zero delays, real clock (time)"
            }
            Self::GuardsSuccess => "E. Guards: what a call that succeeds pays, one thread and two on the same object",
            Self::GuardsFailure => "E. Guards: what a failure or a retry pays, one thread and two on the same object",
            Self::PendingDue => "F. A million pending retries: one is due, and waits again",
            Self::PendingCancelled => "F. A million pending retries: one is cancelled, and another waits",
            Self::LayerGet => "H. HTTP, answered at once: a tower layer, no body",
            Self::LayerPut => "H. HTTP, answered at once: a tower layer, a body of 1 KiB",
            Self::Middleware => "H. HTTP, answered at once: a middleware for reqwest",
            Self::PipeShort => "J. WebSocket over a pipe: 64 bytes there and back, both ends counted",
            Self::PipeLong => "J. WebSocket over a pipe: 4 KiB there and back, both ends counted",
            Self::SocketShort => "J. WebSocket over loopback: 64 bytes there and back, both ends counted",
            Self::SocketLong => "J. WebSocket over loopback: 4 KiB there and back, both ends counted",
            Self::SocketIdle => "J. WebSocket over a pipe: opened and dropped, and the memory of 2,000 idle ones",
        }
    }
}

/// The sections that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[value(rename_all = "upper")]
pub(crate) enum Section {
    /// One next delay.
    A,
    /// Blocking, success at once.
    B,
    /// Async, success at once.
    C,
    /// Three failures, then success.
    D,
    /// Guards.
    E,
    /// A million pending retries.
    F,
    /// Crates, build time, size.
    G,
    /// HTTP, answered at once.
    H,
    /// WebSocket.
    J,
}

/// Which side of the comparison a row is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// The work itself, without any retry.
    Bare,
    /// Hand-written code that does only the necessary work.
    Floor,
    /// This project.
    Stagger,
    /// Somebody else's crate.
    Peer,
}

/// How a case is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Run {
    /// Runs the operation this many times; time and instructions are counted.
    Work(fn(u64)),
    /// Runs the operation this many times; only time is counted, for instructions say nothing about
    /// waiting.
    Wait(fn(u64)),
    /// Cannot be measured, and why.
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
    /// How many entries it keeps in memory: what each of them takes is weighed.
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

    /// Names the case for the process that runs it alone under callgrind.
    pub(crate) fn id(&self) -> String {
        format!("{:?}/{:?}/{}", self.table, self.role, self.name)
    }

    const fn new(table: Table, role: Role, name: &'static str, run: Run) -> Self {
        Self { table, role, name, run, sizes: None, entries: None, note: "" }
    }
}
