use core::fmt;
use std::io;

/// The exit code of `run` if stagger itself fails or the command line is wrong, as of GNU `timeout` and `env`: all
/// other codes belong to the command.
pub const RUN_FAILURE: u8 = 125;
/// The exit code of the other subcommands for a usage error.
pub const USAGE_ERROR: u8 = 2;

/// The error of a subcommand. A message ends with the fix, if there is one.
#[derive(Debug)]
pub enum CliError {
    Usage(String),
    Io {
        /// The failed operation: "cannot open run.ndjson".
        doing: String,
        source: io::Error,
    },
}

impl CliError {
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// Creates an I/O error; `doing` reads "cannot open FILE".
    pub fn io(doing: impl fmt::Display, source: impl Into<io::Error>) -> Self {
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
