use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{env, thread};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use stagger::time::{Clock, SystemClock};
use stagger_core::budget::{Tokens, TokensBuilder, TokensState};
use stagger_core::guard::{End, Now, Permit};
use stagger_core::text::Rate;
use stagger_core::{FailureKind, Guard, Instant};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;

/// How long a run waits for the lock. A use takes much less than a millisecond, so a holder that keeps it longer was
/// stopped.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// How long a run waits before it tries to lock the file again.
const LOCK_POLL: Duration = Duration::from_millis(1);

/// The file with the numbers of a budget.
#[derive(Debug)]
struct BudgetFile {
    path: PathBuf,
    /// The current boot of the machine.
    boot: String,
}

/// What a use of the bucket returned, and whether the file was damaged before.
struct Used<T> {
    value: T,
    was_damaged: bool,
}

/// Why a budget cannot be used.
#[derive(Debug)]
enum Unusable {
    /// Another process has held the lock for too long.
    Held,
    Io(io::Error),
}

impl BudgetFile {
    fn new(path: PathBuf) -> Self {
        // Without it, times of an earlier boot are those of a clock that has stepped back.
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = boot.trim();
        let is_id = boot.len() == 36 && boot.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        Self { path, boot: if is_id { boot.to_owned() } else { "-".to_owned() } }
    }

    /// Locks the file, uses the bucket with these limits, and writes what has changed.
    fn with<T>(&self, limits: TokensBuilder, used: impl FnOnce(&Tokens, Instant) -> T) -> Result<Used<T>, Unusable> {
        let file = self.open()?;
        lock(&file)?;
        let mut bytes = Vec::with_capacity(LENGTH + 1);
        (&file).take(LENGTH as u64 + 1).read_to_end(&mut bytes).map_err(Unusable::Io)?;
        let stored = Record::parse(&bytes);
        let now = now();
        let was_damaged = stored.is_none() && !bytes.is_empty();
        let bucket = match &stored {
            Some(Record { boot, state }) if *boot == self.boot => {
                // A clock that has stepped back earns nothing, and goes on from here.
                let refilled = state.refilled.map(|refilled| refilled.min(now));
                limits.restore(TokensState::new(state.millionths, refilled))
            }
            _ => limits.build(),
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

/// Length of a file, in bytes. It never changes, so a file is written at once and in place.
const LENGTH: usize = 128;

/// Begins each file: the program and the version of the format.
const HEAD: [&str; 2] = ["stagger-budget", "1"];

/// The content of a file: `stagger-budget 1 BOOT MILLIONTHS REFILLED`, padded with spaces, and a newline.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    /// The boot of the machine that the times belong to.
    boot: String,
    state: TokensState,
}

impl Record {
    /// Parses a whole file; `None` if it is not exactly what [`to_bytes`](Self::to_bytes) writes.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let words: Vec<_> = str::from_utf8(bytes).ok()?.split_ascii_whitespace().collect();
        let [program, version, boot, millionths, refilled] = words[..] else { return None };
        let refilled = match refilled {
            "-" => None,
            nanos => Some(Instant::from_nanos(nanos.parse().ok()?)),
        };
        let record = Self { boot: boot.to_owned(), state: TokensState::new(millionths.parse().ok()?, refilled) };
        let is_same = [program, version] == HEAD && record.to_bytes() == bytes;
        if is_same { Some(record) } else { None }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Self { boot, state } = self;
        let refilled = state.refilled.map_or_else(|| "-".to_owned(), |refilled| refilled.as_nanos().to_string());
        let line = format!("{} {} {boot} {} {refilled}", HEAD[0], HEAD[1], state.millionths);
        format!("{line:<width$}\n", width = LENGTH - 1).into_bytes()
    }
}

/// Returns the directory of the user's budgets, which only the user can access, and creates it if it is missing.
///
/// # Errors
/// It cannot be created, or others could have put something into it.
fn user_directory() -> Result<PathBuf, CliError> {
    let user = geteuid().as_raw();
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // Of another user after `sudo -E`.
    let is_own = |path: &PathBuf| path.is_absolute() && fs::metadata(path).is_ok_and(|found| found.uid() == user);
    let path = match runtime.filter(is_own) {
        Some(runtime) => runtime.join("stagger"),
        None => env::temp_dir().join(format!("stagger-{user}")),
    };
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(CliError::io(format_args!("--budget: cannot create {}", path_shown(path)), error));
        }
        _ => {}
    }
    check_directory(&path, user).map(|()| path)
}

/// Checks that nobody but the user can have put files into the directory, or have put it there.
fn check_directory(path: &Path, user: u32) -> Result<(), CliError> {
    let found = fs::symlink_metadata(path);
    let found = found
        .map_err(|error: io::Error| CliError::io(format_args!("--budget: cannot read {}", path_shown(path)), error))?;
    let (shown, mode) = (path_shown(path), found.mode() & 0o777);
    let problem = if !found.is_dir() {
        format!("{shown} is not a directory; remove it, or set XDG_RUNTIME_DIR to a directory of yours")
    } else if found.uid() != user {
        format!("{shown} belongs to user {}; remove it, or set XDG_RUNTIME_DIR to a directory of yours", found.uid())
    } else if mode & 0o077 != 0 {
        format!("{shown} is open to other users (mode {mode:o}); run `chmod 700 {shown}`")
    } else {
        return Ok(());
    };
    Err(CliError::usage(format_args!("--budget: {problem}")))
}

/// A token bucket in a file, for the runs of a user on this machine. A retry takes one token, and a success puts one
/// back.
///
/// If the file cannot be used, the run goes on as without a budget; this is told once.
#[derive(Debug)]
pub(crate) struct MachineBudget {
    file: BudgetFile,
    limits: TokensBuilder,
    status: Mutex<Status>,
}

#[derive(Debug, Default)]
struct Status {
    is_unusable: bool,
    warning: Option<String>,
}

impl MachineBudget {
    /// Returns the budget of this name.
    pub(super) fn new(name: &str, size: NonZeroU32, refill: Option<Rate>) -> Result<Self, CliError> {
        let limits = limits(size, refill);
        limits.build().map_err(|error| CliError::usage(format_args!("--budget: {error}")))?;
        let path = user_directory()?.join(format!("budget-{name}"));
        Ok(Self { file: BudgetFile::new(path), limits, status: Mutex::default() })
    }

    /// Returns what the user must be told, once.
    pub(super) fn take_warning(&self) -> Option<String> {
        self.status().warning.take()
    }

    /// Uses the bucket; `None` if that is not possible.
    fn with<T>(&self, used: impl FnOnce(&Tokens, Instant) -> T) -> Option<T> {
        let mut status = self.status();
        if status.is_unusable {
            return None;
        }
        let path = path_shown(&self.file.path);
        match self.file.with(self.limits, used) {
            Ok(Used { value, was_damaged }) => {
                if was_damaged {
                    status.warning = Some(format!(
                        "--budget: {path} was not written by this version of stagger, or was damaged; it is replaced \
                         by \
                         a full budget"
                    ));
                }
                Some(value)
            }
            Err(error) => {
                *status = Status { is_unusable: true, warning: Some(unusable(&error, &path.to_string())) };
                None
            }
        }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guard for MachineBudget {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn reserve(&self, kind: FailureKind, _: &dyn Now) -> Option<Permit> {
        // There is nothing to give back for a retry that no budget has granted.
        self.with(|tokens, now| tokens.reserve(kind, &now)).unwrap_or(Some(Permit::NONE))
    }

    fn settle(&self, permit: Permit, end: End<'_>, _: &dyn Now) {
        self.with(|tokens, now| tokens.settle(permit, end, &now));
    }
}

fn unusable(error: &Unusable, path: &str) -> String {
    format!("--budget: cannot use {path}: {error}; this run goes on without it")
}

/// Returns the settings of a bucket in which a token is a retry.
fn limits(size: NonZeroU32, refill: Option<Rate>) -> TokensBuilder {
    let limits = Tokens::builder().capacity(size.get()).cost(1).reward(1);
    match refill {
        Some(rate) => limits.refill(1, time_of_one(rate)),
        None => limits,
    }
}

/// Returns the time in which one retry returns.
pub(super) fn time_of_one(rate: Rate) -> Duration {
    Duration::try_from_secs_f64(rate.get().recip()).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use stagger_core::Outcome;

    use super::*;
    use crate::run::args::RunArgs;

    fn record(millionths: u64, refilled: Option<u64>) -> Record {
        let boot = "0f7c2a6e-33cf-4d3a-9c3c-0e8b4f6f7a11".to_owned();
        Record { boot, state: TokensState::new(millionths, refilled.map(Instant::from_nanos)) }
    }

    #[test]
    fn every_record_has_the_same_length_and_is_read_back() {
        for record in [record(0, None), record(u64::MAX, Some(u64::MAX)), record(100_000_000, Some(0))] {
            let bytes = record.to_bytes();
            assert_eq!((bytes.len(), bytes.last()), (LENGTH, Some(&b'\n')));
            assert_eq!(Record::parse(&bytes), Some(record));
        }
    }

    #[test]
    fn what_is_not_a_whole_record_of_this_version_is_refused() {
        let whole = record(100_000_000, Some(7)).to_bytes();
        for cut in 0..whole.len() {
            assert_eq!(Record::parse(&whole[..cut]), None, "cut at {cut}");
        }
        assert_eq!(Record::parse(&[&whole[..], b"\n"].concat()), None);
        let text = String::from_utf8(whole).unwrap();
        for (from, to) in [(" 1 ", " 2 "), ("stagger-budget", "stagger-budgit"), (" 7 ", " x "), (" 7 ", " 07")] {
            let other = text.replacen(from, to, 1);
            assert_eq!((other.len(), Record::parse(other.as_bytes())), (LENGTH, None), "{other}");
        }
    }

    /// The library's budget has another unit: 500 tokens, of which a retry takes and a success returns five.
    #[test]
    fn the_default_grants_as_many_retries_as_the_default_of_the_library() {
        use clap::Args;
        let command = RunArgs::augment_args(clap::Command::new("run"));
        let size = command.get_arguments().find(|arg| arg.get_id() == "budget_size").unwrap();
        let size = size.get_default_values()[0].to_str().unwrap().parse().unwrap();
        let (ours, library) = (limits(size, None).build().unwrap(), Tokens::new());
        let now = Instant::ZERO;
        for step in 0..1_000 {
            assert_eq!(ours.available(), library.available(), "step {step}");
            if step % 7 == 6 {
                ours.settle(Permit::NONE, End::Made(&Outcome::Success), &now);
                library.settle(Permit::NONE, End::Made(&Outcome::Success), &now);
            } else {
                let granted = ours.reserve(FailureKind::Transient, &now).is_some();
                assert_eq!(granted, library.reserve(FailureKind::Transient, &now).is_some(), "step {step}");
            }
        }
    }
}
