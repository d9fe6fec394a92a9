//! Scripts of outcomes, and the trace of what a driver made of one.

use core::time::Duration;

use stagger::observe::Action;
use stagger::{Cause, Error, FailureKind, Marked, Outcome, ServerHint, StopReason};

use crate::suite::support::{Fail, ms};

/// One attempt of a script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptedAttempt {
    pub(crate) duration: Duration,
    pub(crate) result: ScriptedResult,
}

/// The result of a scripted attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScriptedResult {
    /// A value.
    Value(u32),
    /// A value that the validation rejects.
    Invalid,
    /// An error that the rule classifies.
    Error(Outcome),
    /// A marked error, which the rule would classify as permanent.
    Marked(Outcome),
}

/// The value that [`check`] rejects.
pub(crate) const INVALID: u32 = 0;
/// Every attempt after the end of a script.
const AFTER_SCRIPT: ScriptedAttempt = ScriptedAttempt { duration: Duration::ZERO, result: ScriptedResult::Value(99) };

impl ScriptedAttempt {
    /// Returns the result for drivers that read marks and validate.
    pub(crate) fn marked_result(self) -> Result<u32, Marked<Fail>> {
        match self.result {
            ScriptedResult::Value(value) => Ok(value),
            ScriptedResult::Invalid => Ok(INVALID),
            ScriptedResult::Error(outcome) => Err(Marked::from(Fail(outcome))),
            ScriptedResult::Marked(outcome) => Err(Marked::with_outcome(Fail(Outcome::Permanent), outcome)),
        }
    }

    /// Returns the result for drivers that neither read marks nor validate.
    pub(crate) fn plain_result(self) -> Result<u32, Fail> {
        match self.result {
            ScriptedResult::Value(value) => Ok(value),
            ScriptedResult::Invalid => Err(Fail::TRANSIENT),
            ScriptedResult::Error(outcome) | ScriptedResult::Marked(outcome) => Err(Fail(outcome)),
        }
    }

    /// Returns the outcome for the core state machine.
    pub(crate) fn outcome(self) -> Outcome {
        match self.result {
            ScriptedResult::Value(_) => Outcome::Success,
            ScriptedResult::Invalid => Outcome::TRANSIENT,
            ScriptedResult::Error(outcome) | ScriptedResult::Marked(outcome) => outcome,
        }
    }
}

/// Rejects [`INVALID`] values.
pub(crate) fn check(value: u32) -> Result<u32, Fail> {
    if value == INVALID { Err(Fail::TRANSIENT) } else { Ok(value) }
}

/// The attempts of one call, in order.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    attempts: Vec<ScriptedAttempt>,
}

impl Script {
    pub(crate) fn new(attempts: Vec<ScriptedAttempt>) -> Self {
        Self { name: "random", attempts }
    }

    /// Returns the attempt with this index, from 0.
    pub(crate) fn attempt(&self, index: usize) -> ScriptedAttempt {
        self.attempts.get(index).copied().unwrap_or(AFTER_SCRIPT)
    }
}

/// Returns the fixed scripts.
pub(crate) fn scripts() -> Vec<Script> {
    use ScriptedResult::{Error, Invalid, Marked, Value};
    const fn failed(kind: FailureKind, hint: Option<ServerHint>) -> ScriptedResult {
        Error(Outcome::Failed { kind, hint })
    }
    const TRANSIENT: ScriptedResult = Error(Outcome::TRANSIENT);
    const THROTTLED: ScriptedResult = failed(FailureKind::Throttled, None);
    const LOCAL: ScriptedResult = failed(FailureKind::LocalExhaustion, None);
    let at_least = |nanos| failed(FailureKind::Throttled, Some(ServerHint::AtLeast(Duration::from_nanos(nanos))));
    let reserved = |nanos| failed(FailureKind::Transient, Some(ServerHint::Reserved(Duration::from_nanos(nanos))));
    let script = |name, millis: u64, results: &[ScriptedResult]| Script {
        name,
        attempts: results.iter().map(|&result| ScriptedAttempt { duration: ms(millis), result }).collect(),
    };
    vec![
        script("success at first attempt", 0, &[Value(1)]),
        script("success after two failures", 0, &[TRANSIENT, TRANSIENT, Value(3)]),
        script("no success", 0, &[TRANSIENT; 12]),
        script("attempts that take time", 7, &[TRANSIENT; 12]),
        script("every failure kind", 1, &[THROTTLED, LOCAL, TRANSIENT, LOCAL, THROTTLED, Value(6)]),
        script("permanent in the end", 0, &[TRANSIENT, LOCAL, Error(Outcome::Permanent)]),
        script(
            "not processed, twice",
            0,
            &[Error(Outcome::NotProcessed), TRANSIENT, Error(Outcome::NotProcessed), Value(4)],
        ),
        script("minimum waits", 2, &[at_least(3_000_000), at_least(2_500), at_least(1_234_567), TRANSIENT, Value(5)]),
        script("reserved times", 0, &[reserved(20_000_000), reserved(1), reserved(2_000_001), Value(4)]),
        script("do not retry", 0, &[TRANSIENT, failed(FailureKind::Transient, Some(ServerHint::DoNotRetry))]),
        script("hint above the limit", 0, &[TRANSIENT, at_least(3_600_000_000_000)]),
        script("values rejected by validation", 0, &[Invalid, Invalid, Value(3)]),
        script(
            "marks",
            0,
            &[Marked(Outcome::TRANSIENT), Marked(Outcome::NotProcessed), Invalid, Marked(Outcome::Permanent)],
        ),
        script("an error classified as success", 0, &[TRANSIENT, Error(Outcome::Success)]),
        script("an error classified as cancelled", 0, &[TRANSIENT, Error(Outcome::Cancelled)]),
    ]
}

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
