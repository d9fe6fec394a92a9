use core::ops::Range;
use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::stdio::stderr;
use stagger_core::Instant;
use tempfile::SpooledTempFile;

use super::fd::{self, PIPE_SAFE};
use super::patterns::LineMatcher;

/// One output stream of the command that passes through stagger, to be buffered or searched.
///
/// The command writes to a pipe and never to our buffer file: a script's `> /dev/stderr` would truncate it.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    /// The pipe; `None` at the end of the stream.
    source: Option<OwnedFd>,
    sink: Sink,
    buffer: Vec<u8>,
    /// The part of the buffer that was read and not yet written.
    pending: Range<usize>,
    matcher: LineMatcher<'a>,
    pub(super) bytes_seen: u64,
}

#[derive(Debug)]
enum Sink {
    /// Memory; a temporary file beyond [`MAX_BUFFERED_IN_MEMORY`].
    Buffer(SpooledTempFile),
    /// One of our own streams.
    Forward(BorrowedFd<'static>),
    /// The command writes to the stream directly.
    Inherited,
}

/// A stream after the end of the attempt.
#[derive(Debug)]
pub(super) struct Output<'a> {
    pub(super) matcher: LineMatcher<'a>,
    pub(super) bytes_seen: u64,
    held: Option<SpooledTempFile>,
}

const MAX_BUFFERED_IN_MEMORY: usize = 8 * 1024 * 1024;
const BUFFER_SIZE: usize = 64 * 1024;

impl<'a> Stream<'a> {
    /// Creates a stream that is buffered until [`Output::release`].
    pub(super) fn buffered(source: OwnedFd, matcher: LineMatcher<'a>) -> Self {
        Self::new(Some(source), Sink::Buffer(SpooledTempFile::new(MAX_BUFFERED_IN_MEMORY)), matcher)
    }

    /// Creates a stream that is forwarded as it arrives.
    pub(super) fn forwarded(source: OwnedFd, to: BorrowedFd<'static>, matcher: LineMatcher<'a>) -> Self {
        Self::new(Some(source), Sink::Forward(to), matcher)
    }

    /// Creates a stream that the command writes directly, of which nothing is read.
    pub(super) fn inherited() -> Self {
        Self::new(None, Sink::Inherited, LineMatcher::new([]))
    }

    fn new(source: Option<OwnedFd>, sink: Sink, matcher: LineMatcher<'a>) -> Self {
        let buffer = if source.is_some() { vec![0; BUFFER_SIZE] } else { Vec::new() };
        Self { source, sink, buffer, pending: 0..0, matcher, bytes_seen: 0 }
    }

    /// Returns what must be ready before the next call of [`advance`](Self::advance); `None` if there is nothing to do.
    pub(super) fn poll_fd(&self) -> Option<PollFd<'_>> {
        match &self.sink {
            Sink::Forward(to) if self.is_blocked() => Some(PollFd::from_borrowed_fd(*to, PollFlags::OUT)),
            _ => self.source.as_ref().map(|source| PollFd::new(source, PollFlags::IN)),
        }
    }

    /// Reads or writes once. Call it only if that does not block.
    pub(super) fn advance(&mut self) -> io::Result<()> {
        if self.is_blocked() {
            self.write();
            return Ok(());
        }
        let Some(source) = &self.source else { return Ok(()) };
        match rustix::io::read(source, &mut self.buffer) {
            Ok(0) => self.source = None,
            Ok(n) => return self.accept(n),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.close(),
        }
        Ok(())
    }

    fn accept(&mut self, n: usize) -> io::Result<()> {
        let bytes = &self.buffer[..n];
        self.bytes_seen += n as u64;
        self.matcher.feed(bytes);
        match &mut self.sink {
            Sink::Buffer(spool) => spool.write_all(bytes),
            Sink::Forward(_) => {
                self.pending = 0..n;
                Ok(())
            }
            Sink::Inherited => Ok(()),
        }
    }

    fn write(&mut self) {
        let Sink::Forward(to) = self.sink else { return };
        let bytes = &self.buffer[self.pending.clone()];
        match rustix::io::write(to, &bytes[..bytes.len().min(PIPE_SAFE)]) {
            Ok(written) => self.pending.start += written,
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The reader has closed it. Closing the pipe makes the command's own next write fail, as without stagger.
            Err(_) => self.close(),
        }
    }

    /// Stops reading and discards pending output.
    pub(super) fn close(&mut self) {
        self.source = None;
        self.pending = 0..0;
    }

    /// Returns whether output was read that is not yet written.
    pub(super) fn is_blocked(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn is_done(&self) -> bool {
        self.source.is_none() && !self.is_blocked()
    }

    /// Completes the search and returns the output.
    pub(super) fn finish(mut self) -> Output<'a> {
        self.matcher.finish();
        let held = match self.sink {
            Sink::Buffer(spool) => Some(spool),
            Sink::Forward(_) | Sink::Inherited => None,
        };
        Output { matcher: self.matcher, bytes_seen: self.bytes_seen, held }
    }
}

impl Output<'_> {
    /// Writes the buffered output to `to`; the error is `Interrupted` if `cancelled` was set while the write was
    /// blocked.
    pub(super) fn release(&mut self, to: BorrowedFd<'_>, cancelled: &AtomicBool) -> io::Result<()> {
        let Some(mut spool) = self.held.take() else { return Ok(()) };
        spool.seek(SeekFrom::Start(0))?;
        fd::copy(&mut spool, to, cancelled)
    }
}

/// Decides how long to keep reading the streams of a command that has ended.
///
/// Its output is in the pipes or has been read. A background process that has inherited a stream can keep it open
/// forever, so the end of the stream is not awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// When to poll the streams for the last time.
    pub(super) idle_deadline: Instant,
    limit: u64,
    /// Whether the streams were idle at the deadline.
    pub(super) is_done: bool,
}

/// Reading stops after this time without data.
const IDLE_LIMIT: Duration = Duration::from_millis(200);
/// Capacity of a pipe (Linux: `pipe-max-size`). At most this much was written before the end of the command and not
/// read yet.
const PIPE_CAPACITY: u64 = 1024 * 1024;

impl Drain {
    /// Starts when the command has ended, after `bytes_seen` bytes were read.
    pub(super) fn start(now: Instant, bytes_seen: u64) -> Self {
        Self {
            idle_deadline: now.saturating_add(IDLE_LIMIT),
            limit: bytes_seen.saturating_add(2 * PIPE_CAPACITY),
            is_done: false,
        }
    }

    /// Records that data was read, or written to a slow reader. Returns whether to continue.
    pub(super) fn on_progress(&mut self, now: Instant, bytes_seen: u64) -> bool {
        self.idle_deadline = now.saturating_add(IDLE_LIMIT);
        bytes_seen <= self.limit
    }

    /// Records that the streams were polled and had no data.
    pub(super) fn on_idle(&mut self, now: Instant) {
        self.is_done = now >= self.idle_deadline;
    }
}

/// Standard error, for what a command has logged to a file. It is searched like what the command writes there directly.
#[derive(Debug)]
pub(super) struct Relay<'a, 'p> {
    pub(super) matcher: &'a mut LineMatcher<'p>,
    /// Cancels a blocked write.
    pub(super) cancelled: &'a AtomicBool,
}

impl Write for Relay<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.matcher.feed(bytes);
        // If standard error is closed, the log is lost, as the command's own output would be; its headers still count.
        let _ = fd::write_all(stderr(), bytes, self.cancelled);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.matcher.finish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_never_idles_is_abandoned_after_its_byte_limit() {
        let at = |ms| Instant::ZERO.saturating_add(Duration::from_millis(ms));
        let mut drain = Drain::start(at(0), 500);
        assert_eq!(drain.idle_deadline, at(200));
        assert!(drain.on_progress(at(150), 500 + 2 * PIPE_CAPACITY));
        assert_eq!(drain.idle_deadline, at(350));
        assert!(!drain.on_progress(at(300), 501 + 2 * PIPE_CAPACITY));
    }

    /// On a loaded machine, the process may not be scheduled for longer than the idle limit.
    #[test]
    fn a_stream_that_was_not_polled_is_not_idle() {
        let at = |ms| Instant::ZERO.saturating_add(Duration::from_millis(ms));
        let mut drain = Drain::start(at(0), 0);
        drain.on_idle(at(199));
        assert!(!drain.is_done);
        assert!(drain.on_progress(at(5_000), 10));
        assert!(!drain.is_done);
        drain.on_idle(at(5_200));
        assert!(drain.is_done);
    }
}
