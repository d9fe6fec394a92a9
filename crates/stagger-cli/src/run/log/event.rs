use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use std::ffi::OsString;

use stagger_core::{Policy, Source, Stop};

use super::super::classifier::NoRetryReason;
use super::super::status::AttemptStatus;

/// What happens in a run, as it is told to people, to logs and to programs.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) enum Event<'a> {
    /// The run begins.
    Started(Started<'a>),
    /// The first attempt waits for the policy's spread.
    Spread(Duration),
    /// An attempt begins.
    Attempting(Count),
    /// An attempt has ended.
    AttemptEnded(&'a AttemptEnded),
    /// The run has ended.
    Done(&'a Done),
    /// Something that is good to know.
    Note(&'a str),
    /// Something that went wrong beside the command.
    Warning(&'a str),
}

/// What a run is going to do.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct Started<'a> {
    pub(in crate::run) policy: &'a Policy,
    pub(in crate::run) seed: u64,
    pub(in crate::run) command: &'a [OsString],
}

/// Which attempt it is, of how many: "3/6".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) struct Count {
    pub(in crate::run) n: u32,
    pub(in crate::run) max: Option<NonZeroU32>,
}

/// An attempt that has ended.
#[derive(Clone, Debug)]
pub(in crate::run) struct AttemptEnded {
    pub(in crate::run) count: Count,
    pub(in crate::run) status: AttemptStatus,
    pub(in crate::run) took: Duration,
    pub(in crate::run) next: NextStep,
    /// Since the run began.
    pub(in crate::run) total: Duration,
    /// All waits so far, the coming one not included.
    pub(in crate::run) waited: Duration,
}

/// What follows an attempt.
#[derive(Clone, Debug)]
pub(in crate::run) enum NextStep {
    /// Nothing: it did what was wanted.
    Done,
    /// Another one.
    Retry {
        after: Duration,
        source: Source,
        /// Between what the delay was drawn.
        bounds: Option<(Duration, Duration)>,
        /// What the command retry_after for.
        retry_after: Option<Duration>,
        /// It did what was wanted, and must do so again.
        repeat_success: bool,
    },
    /// Nothing: the policy has no further attempt, or none would help.
    Stop { stop: Stop, reason: Option<NoRetryReason>, limit: Option<Duration> },
    /// Nothing: stagger was retry_after to end by this signal.
    Interrupted(i32),
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub(in crate::run) struct Done {
    pub(in crate::run) ok: bool,
    /// What stagger exits with, if it exits.
    pub(in crate::run) exit: u8,
    /// The signal by which it ends itself otherwise.
    pub(in crate::run) signal: Option<i32>,
    pub(in crate::run) stop: Option<Stop>,
    /// How often the command was run.
    pub(in crate::run) attempts: u64,
    pub(in crate::run) total: Duration,
    pub(in crate::run) waited: Duration,
    pub(in crate::run) seed: u64,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) => write!(f, "{}/{max}", self.n),
            None => write!(f, "{}/inf", self.n),
        }
    }
}

impl NoRetryReason {
    /// As one word, for logs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::StopOn => "stop-on",
            Self::NotRetryOn => "not-retry-on",
            Self::StopIf => "stop-if",
            Self::NotRetryIf => "not-retry-if",
            Self::Advice => "advice",
            Self::ReaderGone => "reader-gone",
        }
    }
}
