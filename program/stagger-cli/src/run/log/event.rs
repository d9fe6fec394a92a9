use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use std::ffi::OsString;

use serde::{Serialize, Serializer};
use stagger_core::{DelaySource, Policy, StopReason};

use crate::run::status::{AttemptStatus, NoRetryReason};

/// An event of a run, for all log formats; serialized as in the JSON log.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    #[serde(rename = "start")]
    Started {
        #[serde(serialize_with = "one_line")]
        policy: &'a Policy,
        seed: u64,
        /// The name of the budget that the run shares.
        #[serde(skip_serializing_if = "Option::is_none")]
        budget: Option<&'a str>,
        #[serde(serialize_with = "lossy_words")]
        command: &'a [OsString],
    },
    /// The first attempt waits for the policy's spread.
    Spread {
        #[serde(rename = "wait_s", serialize_with = "seconds")]
        wait: Duration,
    },
    Attempting(Count),
    #[serde(rename = "attempt")]
    AttemptEnded(&'a AttemptEnded),
    Done(&'a Done),
    /// A hint for the user.
    Note {
        message: &'a str,
    },
    /// A problem other than a failure of the command.
    Warning {
        message: &'a str,
    },
}

/// The number of an attempt and the maximum: "3/6".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    pub(crate) n: u32,
    pub(crate) max: Option<NonZeroU32>,
}

#[derive(Clone, Debug)]
pub(crate) struct AttemptEnded {
    pub(crate) count: Count,
    pub(crate) status: AttemptStatus,
    /// The status of the HTTP response, if one was read.
    pub(crate) http_status: Option<u16>,
    pub(crate) took: Duration,
    pub(crate) next: NextStep,
    /// Time since the start of the run.
    pub(crate) total: Duration,
    /// Sum of all waits so far, without the next one.
    pub(crate) waited: Duration,
}

#[derive(Clone, Debug)]
pub(crate) enum NextStep {
    Done,
    Retry {
        after: Duration,
        source: DelaySource,
        /// The interval from which the delay was drawn.
        bounds: Option<(Duration, Duration)>,
        /// The delay that the command requested.
        retry_after: Option<Duration>,
        /// Whether the attempt succeeded and must succeed again (`--consecutive`).
        repeat_success: bool,
    },
    /// The run has failed: a limit of the policy is reached, or the failure is not retried.
    Stop {
        stop: StopReason,
        reason: Option<NoRetryReason>,
        limit: Option<Duration>,
    },
    Interrupted(i32),
}

/// A finished run, as in the JSON log and in the report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Done {
    pub(crate) ok: bool,
    /// The exit code of stagger.
    pub(crate) exit: u8,
    /// The signal by which stagger ends instead, if it was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<&'static str>,
    pub(crate) attempts: u64,
    pub(crate) total_s: f64,
    pub(crate) waited_s: f64,
    pub(crate) seed: u64,
}

/// Serializes a policy as one line of the policy language.
pub(crate) fn one_line<S: Serializer>(policy: &&Policy, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(policy)
}

/// Serializes the words of a command, with replacement characters for what is not UTF-8.
pub(crate) fn lossy_words<S: Serializer>(words: &&[OsString], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(words.iter().map(|word| word.to_string_lossy()))
}

fn seconds<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(length.as_secs_f64())
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) => write!(f, "{}/{max}", self.n),
            None => write!(f, "{}/inf", self.n),
        }
    }
}
