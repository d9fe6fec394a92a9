use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use std::ffi::OsString;

use stagger_core::{DelaySource, Policy, StopReason};

use super::super::ended::Ended;
use super::super::judge::Why;

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
    Tried(&'a Tried),
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
pub(in crate::run) struct Tried {
    pub(in crate::run) count: Count,
    pub(in crate::run) ended: Ended,
    pub(in crate::run) took: Duration,
    pub(in crate::run) next: Next,
    /// Since the run began.
    pub(in crate::run) total: Duration,
    /// All waits so far, the coming one not included.
    pub(in crate::run) waited: Duration,
}

/// What follows an attempt.
#[derive(Clone, Debug)]
pub(in crate::run) enum Next {
    /// Nothing: it did what was wanted.
    Done,
    /// Another one.
    Retry {
        after: Duration,
        source: DelaySource,
        /// Between what the delay was drawn.
        bounds: Option<(Duration, Duration)>,
        /// What the command asked for.
        asked: Option<Duration>,
        /// It did what was wanted, and must do so again.
        again: bool,
    },
    /// Nothing: the policy has no further attempt, or none would help.
    Stop { stop: StopReason, why: Option<Why>, limit: Option<Duration> },
    /// Nothing: stagger was asked to end by this signal.
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
    pub(in crate::run) stop: Option<StopReason>,
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

impl Why {
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
