use core::time::Duration;

use stagger::{Cause, Error, StopReason, observe::Action};

use crate::suite::support::Fail;

/// What was decided in one call, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) decisions: Vec<Decided>,
    pub(crate) end: Option<End>,
    /// How often the operation was called.
    pub(crate) calls: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    pub(crate) attempt: u32,
    pub(crate) action: Action,
    pub(crate) elapsed: Duration,
    pub(crate) budget_left: Option<u64>,
}

/// What the caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Value(u32),
    Failed {
        stop: StopReason,
        attempts: u32,
        elapsed: Duration,
    },
    /// Without an error of the operation's.
    Refused {
        stop: StopReason,
        attempts: u32,
        elapsed: Duration,
    },
}

impl From<Result<u32, Error<Fail>>> for End {
    fn from(result: Result<u32, Error<Fail>>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(error) => {
                let (stop, attempts, elapsed) = (error.stop_reason(), error.attempts(), error.elapsed());
                match error.cause() {
                    Cause::Operation(_) => Self::Failed { stop, attempts, elapsed },
                    Cause::Rejected(_) => Self::Refused { stop, attempts, elapsed },
                }
            }
        }
    }
}
