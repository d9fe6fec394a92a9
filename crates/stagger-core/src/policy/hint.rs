use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::text::{Compact, ParseError, Problem, parse_duration};

/// A delay that the server asked for: `Retry-After`, `retry-after-ms`, `grpc-retry-pushback-ms`, the close codes 1012
/// and 1013, the reset time of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerHint {
    /// Retry no earlier than after this delay. The server may have sent the same delay to every client.
    ///
    /// With the default [`HintMode::AtLeast`] the retry waits `hint + U[0, max(ceiling, hint · hint_spread)]`. It never
    /// comes earlier than the hint, and clients that received the same hint do not retry at the same time.
    AtLeast(Duration),
    /// A reservation: a point in time that the server reserved for this client alone. The retry waits exactly this
    /// long, to the timer's tick, with nothing added.
    Reserved(Duration),
    /// Do not retry.
    DoNotRetry,
}

/// What a [`ServerHint::AtLeast`] does to the delay.
///
/// In every mode, a hinted retry uses attempts, time and budget like any other, and a hint longer than `max_hint` stops
/// the call.
///
/// As text: `at-least`, `exact`, `clamp:5s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HintMode {
    /// `hint + U[0, max(ceiling, hint · hint_spread)]`. The default.
    #[default]
    AtLeast,
    /// The hint, to the nanosecond. Clients that received the same hint retry at the same time: for servers that send
    /// each client a delay of its own.
    Exact,
    /// `min(max(draw, hint), draw + d)`: between the delay that was drawn and that delay plus `d`, as the AWS SDKs do
    /// since 2026 with `d` = 5 s.
    ///
    /// A hint above `draw + d` is shortened.
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
