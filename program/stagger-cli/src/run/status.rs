use core::fmt;
use std::io;

use signal_hook::low_level::signal_name;
use stagger_terminal::output::error::RUN_FAILURE;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptStatus {
    Exit(u8),
    Signal(i32),
    /// The command was terminated because it ran longer than `--timeout`.
    Timeout,
    NotRun(NotRun),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotRun {
    NotFound,
    /// The file exists and cannot be executed.
    NotExecutable,
    /// The system currently lacks the resources for another process.
    ResourceLimit,
}

/// The exit code of GNU `timeout` for a command that has timed out.
pub(super) const TIMEOUT_CODE: u8 = 124;
const NOT_EXECUTABLE_CODE: u8 = 126;
const NOT_FOUND_CODE: u8 = 127;

impl AttemptStatus {
    /// Returns the exit code that represents the status, as used by shells and GNU `timeout`.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Exit(code) => code,
            // The highest signal is 64, so the sum fits a byte.
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            Self::Timeout => TIMEOUT_CODE,
            Self::NotRun(NotRun::NotFound) => NOT_FOUND_CODE,
            Self::NotRun(NotRun::NotExecutable) => NOT_EXECUTABLE_CODE,
            Self::NotRun(NotRun::ResourceLimit) => RUN_FAILURE,
        }
    }

    /// Returns the category of the status, for logs.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Exit(0) => "ok",
            Self::Exit(_) => "exit",
            Self::Signal(_) => "signal",
            Self::Timeout => "timeout",
            Self::NotRun(_) => "not-run",
        }
    }
}

/// Writes "exit 22", "killed by SIGKILL" or "timeout".
impl fmt::Display for AttemptStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exit(0) => f.write_str("ok"),
            Self::Exit(code) => write!(f, "exit {code}"),
            Self::Signal(signal) => write!(f, "killed by {}", SignalName(signal)),
            Self::Timeout => f.write_str("timeout"),
            Self::NotRun(_) => f.write_str("not run"),
        }
    }
}

impl NotRun {
    pub(super) fn from_error(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound,
            io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => Self::ResourceLimit,
            _ if error.raw_os_error().is_some_and(is_out_of_descriptors) => Self::ResourceLimit,
            _ => Self::NotExecutable,
        }
    }
}

fn is_out_of_descriptors(code: i32) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| errno.raw_os_error() == code)
}

/// Why a failed attempt is not retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRetryReason {
    /// The outcome is in `--stop-on`, or in [`NOT_RETRIED_BY_DEFAULT`].
    StopOn,
    /// The outcome is not in `--retry-on`.
    NotRetryOn,
    /// The output matches `--stop-if-…`.
    StopIf,
    /// The output does not match `--retry-if-…`.
    NotRetryIf,
    /// The command advised to stop.
    Advice,
    /// The reader of standard output has closed it.
    ReaderGone,
    /// The status of the HTTP response is permanent.
    HttpStatus,
    /// The same, and the response announces a wait, which `--announced-waits` would follow.
    AnnouncedWait,
    /// The exit code of the HTTP client is permanent.
    HttpExit,
    /// The HTTP server forbids a retry.
    Server,
    /// The HTTP request may have been processed, and must not be sent twice.
    UnsafeToRetry,
}

impl NoRetryReason {
    /// Returns the identifier used in logs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::StopOn => "stop-on",
            Self::NotRetryOn => "not-retry-on",
            Self::StopIf => "stop-if",
            Self::NotRetryIf => "not-retry-if",
            Self::Advice => "advice",
            Self::ReaderGone => "reader-gone",
            Self::HttpStatus | Self::AnnouncedWait => "http-status",
            Self::HttpExit => "http-exit",
            Self::Server => "server",
            Self::UnsafeToRetry => "unsafe-to-retry",
        }
    }
}

/// Displays the name of a signal, or its number if it has no name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignalName(pub(crate) i32);

impl fmt::Display for SignalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match signal_name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "signal {}", self.0),
        }
    }
}

/// Parses a signal name (`SIGKILL`, `kill`) or number.
pub(super) fn parse_signal(text: &str) -> Option<i32> {
    const MAX_SIGNAL: i32 = 64;
    let number = text.parse::<i32>();
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    (1..=MAX_SIGNAL).find(|&signal| {
        let known = signal_name(signal).and_then(|full| full.strip_prefix("SIG"));
        known.is_some() && (known == Some(name) || number == Ok(signal))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_match_shells_and_timeout() {
        for (ended, code) in [
            (AttemptStatus::Exit(0), 0),
            (AttemptStatus::Exit(2), 2),
            (AttemptStatus::Signal(9), 137),
            (AttemptStatus::Signal(64), 192),
            (AttemptStatus::Timeout, 124),
            (AttemptStatus::NotRun(NotRun::ResourceLimit), 125),
            (AttemptStatus::NotRun(NotRun::NotExecutable), 126),
            (AttemptStatus::NotRun(NotRun::NotFound), 127),
        ] {
            assert_eq!(ended.code(), code, "{ended:?}");
        }
    }

    #[test]
    fn signals_are_parsed_by_name_and_number() {
        for (text, want) in [
            ("SIGKILL", Some(9)),
            ("kill", Some(9)),
            ("Term", Some(15)),
            ("15", Some(15)),
            ("0", None),
            ("65", None),
            ("SIG", None),
            ("fail", None),
        ] {
            assert_eq!(parse_signal(text), want, "{text}");
        }
    }
}
