use core::fmt;

/// Why a scenario or a policy has no mean field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotSimulable {
    /// Delays depend on the delays that were drawn before.
    Delays,
    /// The server gives hints.
    RetryAfter,
    /// A message can be underway for more than ten seconds.
    Network,
    /// There is a limit of attempts, above 256.
    Attempts,
    /// The limit of time is reached before everyone is back: it stops each client at a time of its own.
    Elapsed,
    /// So much goes on for so long that the answer would take minutes, or gigabytes.
    Work,
}

/// A lower-case fragment, with the way out.
impl fmt::Display for NotSimulable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delays => "each delay depends on the one before it; simulate the clients one by one",
            Self::RetryAfter => "the server's hints are different for each client; simulate the clients one by one",
            Self::Network => "messages are underway for more than 10 s; simulate the clients one by one",
            Self::Attempts => "the limit of attempts is above 256; lower it, or simulate the clients one by one",
            Self::Elapsed => "the limit of time stops clients before all are back; simulate the clients one by one",
            Self::Work => "too much goes on for too long; lower the horizon, or simulate the clients one by one",
        })
    }
}

impl core::error::Error for NotSimulable {}
