use core::time::Duration;

use stagger::{FailureKind, Marked, Outcome, ServerHint};

use crate::suite::support::{Fail, ms};

/// What one attempt does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Play {
    /// How long it takes.
    pub(crate) takes: Duration,
    pub(crate) gives: Gives,
}

/// What comes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gives {
    /// A value.
    Value(u32),
    /// A value that the check refuses.
    Unwanted,
    /// An error that the rule judges.
    Error(Outcome),
    /// An error with a mark on it, which the rule would judge as permanent.
    Marked(Outcome),
}

/// What a check makes of an unwanted value.
pub(crate) const UNWANTED: u32 = 0;
/// What every attempt after the end of a script gives.
const AFTERWARDS: Play = Play { takes: Duration::ZERO, gives: Gives::Value(99) };

impl Play {
    /// What an operation returns whose marks are read.
    pub(crate) fn raw(self) -> Result<u32, Marked<Fail>> {
        match self.gives {
            Gives::Value(value) => Ok(value),
            Gives::Unwanted => Ok(UNWANTED),
            Gives::Error(outcome) => Err(Marked::from(Fail(outcome))),
            Gives::Marked(outcome) => Err(Marked::with_outcome(Fail(Outcome::Permanent), outcome)),
        }
    }

    /// What an operation returns that checks its values itself, for drivers that neither read marks nor check.
    pub(crate) fn plain(self) -> Result<u32, Fail> {
        match self.gives {
            Gives::Value(value) => Ok(value),
            Gives::Unwanted => Err(Fail::TRANSIENT),
            Gives::Error(outcome) | Gives::Marked(outcome) => Err(Fail(outcome)),
        }
    }

    /// What the core is told.
    pub(crate) fn outcome(self) -> Outcome {
        match self.gives {
            Gives::Value(_) => Outcome::Success,
            Gives::Unwanted => Outcome::TRANSIENT,
            Gives::Error(outcome) | Gives::Marked(outcome) => outcome,
        }
    }
}

/// A check for [`UNWANTED`] values.
pub(crate) fn check(value: u32) -> Result<u32, Fail> {
    if value == UNWANTED { Err(Fail::TRANSIENT) } else { Ok(value) }
}

/// The attempts of one call, in order.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    plays: Vec<Play>,
}

impl Script {
    pub(crate) fn of(plays: Vec<Play>) -> Self {
        Self { name: "any", plays }
    }

    /// The play of call number `call`, from 0.
    pub(crate) fn play(&self, call: usize) -> Play {
        self.plays.get(call).copied().unwrap_or(AFTERWARDS)
    }
}

/// The table.
pub(crate) fn scripts() -> Vec<Script> {
    use Gives::{Error, Marked, Unwanted, Value};
    const fn failed(kind: FailureKind, hint: Option<ServerHint>) -> Gives {
        Error(Outcome::Failed { kind, hint })
    }
    const TRANSIENT: Gives = Error(Outcome::TRANSIENT);
    const THROTTLED: Gives = failed(FailureKind::Throttled, None);
    const LOCAL: Gives = failed(FailureKind::LocalExhaustion, None);
    let floor = |nanos| failed(FailureKind::Throttled, Some(ServerHint::AtLeast(Duration::from_nanos(nanos))));
    let slot = |nanos| failed(FailureKind::Transient, Some(ServerHint::Reserved(Duration::from_nanos(nanos))));
    let script = |name, takes: u64, gives: &[Gives]| Script {
        name,
        plays: gives.iter().map(|&gives| Play { takes: ms(takes), gives }).collect(),
    };
    vec![
        script("success at once", 0, &[Value(1)]),
        script("success after two", 0, &[TRANSIENT, TRANSIENT, Value(3)]),
        script("never a success", 0, &[TRANSIENT; 12]),
        script("attempts that take time", 7, &[TRANSIENT; 12]),
        script("every kind", 1, &[THROTTLED, LOCAL, TRANSIENT, LOCAL, THROTTLED, Value(6)]),
        script("permanent in the end", 0, &[TRANSIENT, LOCAL, Error(Outcome::Permanent)]),
        script(
            "unprocessed, twice",
            0,
            &[Error(Outcome::NotProcessed), TRANSIENT, Error(Outcome::NotProcessed), Value(4)],
        ),
        script("floors", 2, &[floor(3_000_000), floor(2_500), floor(1_234_567), TRANSIENT, Value(5)]),
        script("slots", 0, &[slot(20_000_000), slot(1), slot(2_000_001), Value(4)]),
        script("never", 0, &[TRANSIENT, failed(FailureKind::Transient, Some(ServerHint::DoNotRetry))]),
        script("hint above the limit", 0, &[TRANSIENT, floor(3_600_000_000_000)]),
        script("values refused by the check", 0, &[Unwanted, Unwanted, Value(3)]),
        script(
            "marks",
            0,
            &[Marked(Outcome::TRANSIENT), Marked(Outcome::NotProcessed), Unwanted, Marked(Outcome::Permanent)],
        ),
        script("an error taken for success", 0, &[TRANSIENT, Error(Outcome::Success)]),
        script("cancelled by its own account", 0, &[TRANSIENT, Error(Outcome::Cancelled)]),
    ]
}
