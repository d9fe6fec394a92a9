use core::fmt;

/// Why a scenario or a policy cannot be computed with the fluid model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotSimulable {
    /// Delays depend on previous delays.
    Delays,
    /// The server sends hints.
    RetryAfter,
    /// The one-way delay can exceed ten seconds.
    Network,
    /// The limit of attempts is above 256.
    Attempts,
    /// The time limit is reached before all clients are back: it stops each client at a different time.
    Elapsed,
    /// The computation would take minutes, or gigabytes of memory.
    Work,
}

/// Displays the reason as a lower-case fragment, with a fix.
impl fmt::Display for NotSimulable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delays => "each delay depends on the previous one; use the exact simulation",
            Self::RetryAfter => "the server's hints differ from client to client; use the exact simulation",
            Self::Network => "the one-way delay exceeds 10 s; use the exact simulation",
            Self::Attempts => "the limit of attempts is above 256; lower it, or use the exact simulation",
            Self::Elapsed => "the time limit stops clients before all are back; use the exact simulation",
            Self::Work => "the computation would take too long; lower the horizon, or use the exact simulation",
        })
    }
}

impl core::error::Error for NotSimulable {}
