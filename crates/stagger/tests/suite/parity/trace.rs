use core::time::Duration;

use stagger::observe::Action;
use stagger::{Cause, Error, StopReason};

use crate::suite::support::Fail;

/// The decisions of one call and its result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) decisions: Vec<DecisionRecord>,
    pub(crate) completion: Option<Completion>,
    /// Number of calls of the operation.
    pub(crate) calls: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DecisionRecord {
    pub(crate) attempt: u32,
    pub(crate) action: Action,
    pub(crate) elapsed: Duration,
    pub(crate) budget_left: Option<u64>,
}

/// The result of a call as the caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    Value(u32),
    Failed {
        stop: StopReason,
        attempts: u32,
        elapsed: Duration,
    },
    /// Failed without an error of the operation.
    Rejected {
        stop: StopReason,
        attempts: u32,
        elapsed: Duration,
    },
}

impl From<Result<u32, Error<Fail>>> for Completion {
    fn from(result: Result<u32, Error<Fail>>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(error) => {
                let (stop, attempts, elapsed) = (error.stop_reason(), error.attempts(), error.elapsed());
                match error.cause() {
                    Cause::Operation(_) => Self::Failed { stop, attempts, elapsed },
                    Cause::Rejected(_) => Self::Rejected { stop, attempts, elapsed },
                }
            }
        }
    }
}
