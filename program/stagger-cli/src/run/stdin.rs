use core::time::Duration;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::FileType;
use rustix::io::Errno;
use stagger::time::{Clock, SystemClock};
use stagger_core::Instant;

use super::args::StdinMode;
use super::fd;
use super::signals::{CaughtSignal, Signals};

#[derive(Debug)]
pub(super) enum StdinSource {
    /// Our own standard input, shared by all attempts.
    Inherit {
        /// Whether it is a pipe that was not at its end yet, so a later attempt may find it exhausted.
        may_run_dry: bool,
    },
    /// Our own standard input, rewound before each attempt to this initial offset.
    Rewind(u64),
    /// A file with a copy of all input.
    Replay(File),
    Null,
}

/// Why standard input was not read to its end.
#[derive(Debug)]
pub(super) enum StdinError {
    /// A signal requests the end of the run.
    Interrupted(CaughtSignal),
    /// The time limit of the run has expired.
    TimeLimit,
    /// It is longer than `--stdin-limit`.
    TooLong,
    Read(io::Error),
    /// The copy cannot be created or written.
    Copy(io::Error),
}

impl StdinSource {
    /// Prepares the source; reads all input for a replay.
    pub(super) fn prepare(
        mode: StdinMode,
        signals: &mut Signals,
        ends_at: Option<Instant>,
        limit: u64,
    ) -> Result<Self, StdinError> {
        let stdin = rustix::stdio::stdin();
        let kind = rustix::fs::fstat(stdin).map(|stat| FileType::from_raw_mode(stat.st_mode));
        Ok(match mode {
            StdinMode::Null => Self::Null,
            StdinMode::Auto | StdinMode::Replay if kind == Ok(FileType::RegularFile) => {
                let start = rustix::fs::seek(stdin, rustix::fs::SeekFrom::Current(0));
                Self::Rewind(start.map_err(|error| StdinError::Read(error.into()))?)
            }
            StdinMode::Auto | StdinMode::Inherit => {
                Self::Inherit { may_run_dry: kind == Ok(FileType::Fifo) && !is_at_end() }
            }
            StdinMode::Replay => Self::Replay(copy_of_stdin(signals, ends_at, limit)?),
        })
    }

    pub(super) fn next(&mut self) -> io::Result<Stdio> {
        Ok(match self {
            Self::Inherit { .. } => Stdio::inherit(),
            Self::Rewind(start) => {
                rustix::fs::seek(rustix::stdio::stdin(), rustix::fs::SeekFrom::Start(*start))?;
                Stdio::inherit()
            }
            Self::Replay(copy) => {
                copy.seek(SeekFrom::Start(0))?;
                Stdio::from(copy.try_clone()?)
            }
            Self::Null => Stdio::null(),
        })
    }

    /// Returns `true` once if earlier attempts have read all input of a pipe.
    pub(super) fn is_exhausted(&mut self) -> bool {
        match self {
            Self::Inherit { may_run_dry } if *may_run_dry && is_at_end() => {
                *may_run_dry = false;
                true
            }
            _ => false,
        }
    }
}

/// Returns whether the pipe is empty and has no writer.
fn is_at_end() -> bool {
    let ready = fd::ready(rustix::stdio::stdin(), PollFlags::IN);
    ready.contains(PollFlags::HUP) && !ready.contains(PollFlags::IN)
}

/// Copies standard input to an unnamed temporary file, which disappears however the process ends.
fn copy_of_stdin(signals: &mut Signals, ends_at: Option<Instant>, mut limit: u64) -> Result<File, StdinError> {
    let (clock, stdin) = (SystemClock, rustix::stdio::stdin());
    let mut copy = tempfile::tempfile().map_err(StdinError::Copy)?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let left = ends_at.map(|end| end.saturating_since(clock.now()));
        if left == Some(Duration::ZERO) {
            return Err(StdinError::TimeLimit);
        }
        let mut fds = [signals.fd(), stdin].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        fd::wait(&mut fds, left).map_err(StdinError::Read)?;
        let [signalled, readable] = fds.map(|fd| !fd.revents().is_empty());
        if signalled && let Some(caught) = signals.take_idle(|| {}) {
            return Err(StdinError::Interrupted(caught));
        }
        if readable {
            match rustix::io::read(stdin, &mut buffer) {
                Ok(0) => return Ok(copy),
                Ok(n) => {
                    limit = limit.checked_sub(n as u64).ok_or(StdinError::TooLong)?;
                    copy.write_all(&buffer[..n]).map_err(StdinError::Copy)?;
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(StdinError::Read(error.into())),
            }
        }
    }
}
