use core::fmt;
use std::io;

/// What `run` exits with when stagger itself failed or was misused, as GNU `timeout` and `env` do: it leaves all other
/// codes to the command.
pub(crate) const OWN_FAILURE: u8 = 125;
/// What the other commands exit with when they were misused.
pub(crate) const MISUSED: u8 = 2;

/// What keeps a command from doing its work. Every message ends with the way out, where there is one.
#[derive(Debug)]
pub(crate) enum CliError {
    /// The command line asks for something that cannot be done.
    Usage(String),
    /// The system refused something that was needed.
    Io {
        /// What was being done: "cannot open run.ndjson".
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl CliError {
    /// A command line that asks for something that cannot be done.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// A refusal of the system; `doing` reads "cannot open FILE".
    pub(crate) fn io(doing: impl fmt::Display, source: impl Into<io::Error>) -> Self {
        Self::Io { doing: doing.to_string(), source: source.into() }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::Io { doing, source } => write!(f, "{doing}: {source}"),
        }
    }
}

impl core::error::Error for CliError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Usage(_) => None,
            Self::Io { source, .. } => Some(source),
        }
    }
}
