use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::text::{Compact, ParseError, Problem, parse_duration};

/// A delay that the server asked for: `Retry-After`, `retry-after-ms`, `grpc-retry-pushback-ms`, the close codes 1012
/// and 1013, a rate limit's reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerHint {
    /// Not before this much time has passed; everyone may have been told the same.
    ///
    /// It is never undercut and never a rendezvous: with the default [`HintMode::AtLeast`] the retry waits
    /// `hint + U[0, max(ceiling, hint · hint_spread)]`, or everyone who was told "5" would come back at 5.
    AtLeast(Duration),
    /// An appointment: a point in time that the server keeps free for this caller alone. It is kept to the tick, with
    /// nothing on top.
    Reserved(Duration),
    /// Do not come back.
    DoNotRetry,
}

/// What a [`ServerHint::AtLeast`] does to the delay.
///
/// Every mode uses up attempts, time and budget like any retry, and what is longer than `max_hint` stops the call.
///
/// As text: `at-least`, `exact`, `clamp:5s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HintMode {
    /// `hint + U[0, max(ceiling, hint · hint_spread)]`. The default.
    #[default]
    AtLeast,
    /// The hint, to the nanosecond. Everyone who was told the same comes back together: for servers that give each
    /// client its own number.
    Exact,
    /// `min(max(draw, hint), draw + d)`: between the delay that was drawn and that delay plus `d`, as the AWS SDKs do
    /// since 2026 with `d` = 5 s.
    ///
    /// A hint above `draw + d` is undercut, as the name says.
    Clamp(Duration),
}

impl fmt::Display for HintMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::AtLeast => f.write_str("at-least"),
            Self::Exact => f.write_str("exact"),
            Self::Clamp(d) => write!(f, "clamp:{}", Compact(d)),
        }
    }
}

impl FromStr for HintMode {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "at-least" => Ok(Self::AtLeast),
            "exact" => Ok(Self::Exact),
            _ => match text.strip_prefix("clamp:").map(parse_duration) {
                Some(Ok(Some(d))) => Ok(Self::Clamp(d)),
                Some(Err(error)) => Err(error),
                _ => Err(ParseError::new(Problem::HintMode, text)),
            },
        }
    }
}
