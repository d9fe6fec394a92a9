use core::fmt;
use core::time::Duration;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::thread;

use rustix::fs::OFlags;
use stagger::time::{Clock, SystemClock};
use stagger_core::Instant;
use stagger_core::budget::{Tokens, TokensBuilder, TokensState};

use super::record::{LENGTH, Record};

/// How long a run waits for the lock. A use takes much less than a millisecond, so a holder that keeps it longer was stopped.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// How long a run waits before it tries to lock the file again.
const LOCK_POLL: Duration = Duration::from_millis(1);

/// The file with the numbers of a budget.
#[derive(Debug)]
pub(super) struct BudgetFile {
    pub(super) path: PathBuf,
    /// The current boot of the machine.
    boot: String,
}

/// What a use of the bucket returned, and whether the file was damaged before.
pub(super) struct Used<T> {
    pub(super) value: T,
    pub(super) was_damaged: bool,
}

/// Why a budget cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// Another process has held the lock for too long.
    Held,
    Io(io::Error),
}

impl BudgetFile {
    pub(super) fn new(path: PathBuf) -> Self {
        // Without it, times of an earlier boot are those of a clock that has stepped back.
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = boot.trim();
        let is_id = boot.len() == 36 && boot.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        Self { path, boot: if is_id { boot.to_owned() } else { "-".to_owned() } }
    }

    /// Locks the file, uses the bucket with these limits, and writes what has changed.
    pub(super) fn with<T>(
        &self,
        limits: TokensBuilder,
        used: impl FnOnce(&Tokens, Instant) -> T,
    ) -> Result<Used<T>, Unusable> {
        let file = self.open()?;
        lock(&file)?;
        let mut bytes = Vec::with_capacity(LENGTH + 1);
        (&file).take(LENGTH as u64 + 1).read_to_end(&mut bytes).map_err(Unusable::Io)?;
        let stored = Record::parse(&bytes);
        let now = now();
        let was_damaged = stored.is_none() && !bytes.is_empty();
        let state = stored.as_ref().filter(|stored| stored.boot == self.boot).map(|stored| {
            // A clock that has stepped back earns nothing, and goes on from here.
            TokensState::new(stored.state.millionths, stored.state.refilled.map(|refilled| refilled.min(now)))
        });
        let bucket = match state {
            Some(state) => limits.restore(state),
            None => limits.build(),
        };
        let bucket = bucket.map_err(|error| Unusable::Io(io::Error::other(error)))?;
        let value = used(&bucket, now);
        let record = Record { boot: self.boot.clone(), state: bucket.state() };
        if stored.as_ref() != Some(&record) {
            if bytes.len() > LENGTH {
                file.set_len(LENGTH as u64).map_err(Unusable::Io)?;
            }
            file.write_all_at(&record.to_bytes(), 0).map_err(Unusable::Io)?;
        }
        // Closing the file releases the lock. No process inherits it: none is started meanwhile.
        Ok(Used { value, was_damaged })
    }

    fn open(&self) -> Result<File, Unusable> {
        // Neither a link nor a FIFO is followed or waited for.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        options.open(&self.path).map_err(Unusable::Io)
    }
}

fn lock(file: &File) -> Result<(), Unusable> {
    let began = SystemClock.now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(Unusable::Io(error)),
            Err(TryLockError::WouldBlock) if SystemClock.now().saturating_since(began) >= LOCK_WAIT => {
                return Err(Unusable::Held);
            }
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_POLL),
        }
    }
}

/// Returns the time of a clock that all processes of the machine share.
#[cfg(target_os = "linux")]
fn now() -> Instant {
    // It counts suspended time, and is not set by anybody.
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let length = Duration::try_from(time).unwrap_or_default();
    Instant::ZERO.saturating_add(length)
}

/// Returns the time of a clock that all processes of the machine share.
#[cfg(not(target_os = "linux"))]
fn now() -> Instant {
    let length = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Instant::ZERO.saturating_add(length.unwrap_or_default())
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => write!(f, "another process holds its lock for more than {LOCK_WAIT:?}; it may be stopped"),
            Self::Io(error) => error.fmt(f),
        }
    }
}
