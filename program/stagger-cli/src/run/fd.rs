use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, SeekFrom, fstat, seek};
use rustix::io::Errno;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;

/// Maximum size of one write in bytes: a writable descriptor accepts this much without blocking, so a stalled reader
/// cannot delay the handling of a signal.
pub(super) const PIPE_SAFE: usize = rustix::pipe::PIPE_BUF;

/// Interval at which a blocked write checks for cancellation.
const WRITE_POLL: Duration = Duration::from_millis(100);

/// Opens the file that `flag` names for writing, and creates it if it is missing. Does not wait for the reader of a
/// FIFO.
pub(super) fn open_to_write(flag: &str, path: &Path, options: &mut OpenOptions) -> Result<File, CliError> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = options.create(true).custom_flags(flags).open(path);
    file.map_err(|error| {
        let is_fifo = || path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo());
        let path = path_shown(path);
        if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && is_fifo() {
            return CliError::usage(format_args!(
                "{flag}: cannot open {path}: no process reads this FIFO; start its reader first"
            ));
        }
        CliError::io(format_args!("{flag}: cannot open {path}"), error)
    })
}

/// Waits until a descriptor is ready, a signal arrives, or `timeout` has elapsed.
pub(super) fn wait(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns which of `flags` hold for `fd` now; errors and hang-ups are always reported.
pub(super) fn ready(fd: BorrowedFd<'_>, flags: PollFlags) -> PollFlags {
    let mut fds = [PollFd::from_borrowed_fd(fd, flags)];
    match wait(&mut fds, Some(Duration::ZERO)) {
        Ok(()) => fds[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

/// Writes all of `bytes`, even to a slow reader. If `cancelled` is set while the write is blocked, the error is
/// `Interrupted`.
pub(super) fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8], cancelled: &AtomicBool) -> io::Result<()> {
    while !bytes.is_empty() {
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
        wait(&mut fds, Some(WRITE_POLL))?;
        if fds[0].revents().is_empty() {
            if cancelled.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            continue;
        }
        match rustix::io::write(fd, &bytes[..bytes.len().min(PIPE_SAFE)]) {
            Ok(written) => bytes = &bytes[written..],
            // A child may have made the shared terminal or pipe non-blocking.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

pub(super) fn copy(source: &mut impl Read, fd: BorrowedFd<'_>, cancelled: &AtomicBool) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match source.read(&mut buffer)? {
            0 => return Ok(()),
            n => write_all(fd, &buffer[..n], cancelled)?,
        }
    }
}

/// Returns the offset of standard output if it is a file that standard error does not share, to determine how much a
/// failed attempt has written ahead of the output of the next one.
///
/// The command writes to standard output directly. Counting the bytes in between has drawbacks: a background process
/// would lose its output when stagger ends, and output and errors that go to the same pipe would be reordered. So this
/// works only for a file, by the offset that is shared with the command, and not for a pipe.
pub(super) fn stdout_position() -> Option<u64> {
    let (stdout, stderr) = (fstat(rustix::stdio::stdout()).ok()?, fstat(rustix::stdio::stderr()).ok());
    let is_file = FileType::from_raw_mode(stdout.st_mode) == FileType::RegularFile;
    let is_shared = stderr.is_some_and(|stderr| (stderr.st_dev, stderr.st_ino) == (stdout.st_dev, stdout.st_ino));
    if is_file && !is_shared { seek(rustix::stdio::stdout(), SeekFrom::Current(0)).ok() } else { None }
}

/// Returns whether standard output is a pipe.
pub(super) fn stdout_is_pipe() -> bool {
    fstat(rustix::stdio::stdout()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

/// Returns whether standard output is a pipe or a socket whose other end is closed.
pub(super) fn stdout_has_no_reader() -> bool {
    let kind = fstat(rustix::stdio::stdout()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    // A terminal that was hung up reports an error, too, but a run that was left behind there goes on.
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
        && ready(rustix::stdio::stdout(), PollFlags::OUT).intersects(PollFlags::ERR | PollFlags::HUP)
}
