use core::ops::Range;
use core::sync::atomic::AtomicBool;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use tempfile::SpooledTempFile;

use super::fd::{self, PIPE_SAFE};
use super::line_matcher::LineMatcher;

/// One output stream of the command that goes through our hands: to be held back, or to be searched on its way.
///
/// The command writes into a pipe and never into a file of ours: a script's `> /dev/stderr` would truncate that.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    /// `None` when it is at its end.
    source: Option<OwnedFd>,
    sink: Sink,
    buffer: Vec<u8>,
    /// What of the buffer was read and not yet written.
    pending: Range<usize>,
    matcher: LineMatcher<'a>,
    bytes_seen: u64,
}

/// Where a stream goes.
#[derive(Debug)]
enum Sink {
    /// Into memory, beyond [`MAX_BUFFERED_IN_MEMORY`] into a file.
    Buffer(SpooledTempFile),
    /// To one of our own streams.
    Forward(BorrowedFd<'static>),
    /// The command has it to itself.
    Inherited,
}

/// What has come of a stream when the attempt is over.
#[derive(Debug)]
pub(super) struct Output<'a> {
    pub(super) matcher: LineMatcher<'a>,
    /// How many bytes went through our hands.
    pub(super) bytes_seen: u64,
    held: Option<SpooledTempFile>,
}

const MAX_BUFFERED_IN_MEMORY: usize = 8 * 1024 * 1024;
const BUFFER_SIZE: usize = 64 * 1024;

impl<'a> Stream<'a> {
    /// Held back until somebody releases it.
    pub(super) fn buffered(source: OwnedFd, matcher: LineMatcher<'a>) -> Self {
        Self::new(Some(source), Sink::Buffer(SpooledTempFile::new(MAX_BUFFERED_IN_MEMORY)), matcher)
    }

    /// Passed on as it comes.
    pub(super) fn forwarded(source: OwnedFd, to: BorrowedFd<'static>, matcher: LineMatcher<'a>) -> Self {
        Self::new(Some(source), Sink::Forward(to), matcher)
    }

    /// A stream that the command writes by itself: nothing is bytes_seen of it.
    pub(super) fn inherited() -> Self {
        Self::new(None, Sink::Inherited, LineMatcher::new([]))
    }

    fn new(source: Option<OwnedFd>, sink: Sink, matcher: LineMatcher<'a>) -> Self {
        let buffer = if source.is_some() { vec![0; BUFFER_SIZE] } else { Vec::new() };
        Self { source, sink, buffer, pending: 0..0, matcher, bytes_seen: 0 }
    }

    /// What must be ready for [`advance`](Self::advance) to have something to do.
    pub(super) fn poll_fd(&self) -> Option<PollFd<'_>> {
        match &self.sink {
            Sink::Forward(to) if self.is_blocked() => Some(PollFd::from_borrowed_fd(*to, PollFlags::OUT)),
            _ => self.source.as_ref().map(|source| PollFd::new(source, PollFlags::IN)),
        }
    }

    /// Reads or writes once. To be called when it would not block.
    ///
    /// # Errors
    /// What is held cannot be stored.
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
            // Nobody reads it any more. The command shall learn that as it would without us: by its own next write.
            Err(_) => self.close(),
        }
    }

    /// Reads no more.
    pub(super) fn close(&mut self) {
        self.source = None;
        self.pending = 0..0;
    }

    /// Something was read and could not be written yet.
    pub(super) fn is_blocked(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Everything was read and written.
    pub(super) fn is_done(&self) -> bool {
        self.source.is_none() && !self.is_blocked()
    }

    pub(super) fn bytes_seen(&self) -> u64 {
        self.bytes_seen
    }

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
    /// Writes what was held back.
    ///
    /// # Errors
    /// It cannot be written; `Interrupted` if `cancelled` was set while nobody took it.
    pub(super) fn release(&mut self, to: BorrowedFd<'_>, cancelled: &AtomicBool) -> io::Result<()> {
        let Some(mut spool) = self.held.take() else { return Ok(()) };
        spool.seek(SeekFrom::Start(0))?;
        fd::copy(&mut spool, to, cancelled)
    }
}
