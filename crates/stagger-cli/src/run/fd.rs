use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// No more than this is written at once: a descriptor that is ready takes this much without blocking, and a reader who
/// has stopped reading must not keep us from hearing a signal.
pub(super) const PIPE_SAFE: usize = rustix::pipe::PIPE_BUF;

/// How long a blocked write sleeps before it looks again whether somebody wants us to end.
const WRITE_POLL: Duration = Duration::from_millis(100);

/// Sleeps until a descriptor is ready, a signal has come, or `timeout` has passed.
pub(super) fn wait(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether `fd` is ready for any of `flags` now; errors and hang-ups are always reported.
pub(super) fn ready(fd: BorrowedFd<'_>, flags: PollFlags) -> PollFlags {
    let mut fds = [PollFd::from_borrowed_fd(fd, flags)];
    match wait(&mut fds, Some(Duration::ZERO)) {
        Ok(()) => fds[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

/// Writes all of `bytes`, however slowly they are taken, unless `cancelled` is set while nobody takes them.
///
/// # Errors
/// What the system said; `Interrupted` if it was given up.
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

/// Writes everything that `source` holds.
///
/// # Errors
/// As [`write_all`], and what reading `source` gave.
pub(super) fn copy(source: &mut impl Read, fd: BorrowedFd<'_>, cancelled: &AtomicBool) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match source.read(&mut buffer)? {
            0 => return Ok(()),
            n => write_all(fd, &buffer[..n], cancelled)?,
        }
    }
}
