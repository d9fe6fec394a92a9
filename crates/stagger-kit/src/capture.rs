use core::mem;
use core::time::Duration;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// One of the two streams that a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What a stream has carried so far, filled by a thread so that a full pipe never stops the child.
#[derive(Debug)]
pub(crate) struct Capture {
    shared: Arc<Shared>,
    /// Where the next line starts.
    cursor: usize,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Seen>,
    grew: Condvar,
}

#[derive(Debug, Default)]
struct Seen {
    bytes: Vec<u8>,
    ended: bool,
}

/// Why there is no next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLine {
    /// The stream has ended.
    Ended,
    /// Nothing came in time.
    TimedOut,
}

impl Capture {
    pub(crate) fn start(mut source: impl Read + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let filled = Arc::clone(&shared);
        thread::spawn(move || {
            let mut chunk = [0; 16 * 1024];
            // An error on a pipe means the same as its end: nothing more will come.
            while let Ok(length @ 1..) = source.read(&mut chunk) {
                filled.seen().bytes.extend_from_slice(&chunk[..length]);
                filled.grew.notify_all();
            }
            filled.seen().ended = true;
            filled.grew.notify_all();
        });
        Self { shared, cursor: 0 }
    }

    /// The next line without its end; the last one may lack an end. Bytes that are not UTF-8 are
    /// replaced.
    pub(crate) fn next_line(&mut self, limit: Duration) -> Result<String, NoLine> {
        let cursor = self.cursor;
        let waiting = |seen: &mut Seen| !seen.ended && !seen.bytes[cursor..].contains(&b'\n');
        let seen = self.shared.wait_while(limit, waiting);
        let rest = &seen.bytes[cursor..];
        let (line, length) = match rest.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&rest[..end], end + 1),
            None if !seen.ended => return Err(NoLine::TimedOut),
            None if rest.is_empty() => return Err(NoLine::Ended),
            None => (rest, rest.len()),
        };
        self.cursor += length;
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    /// Everything so far, lines already handed out included.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shared.seen().bytes).into_owned()
    }

    /// Waits for the end of the stream, at most `limit`.
    pub(crate) fn wait_for_end(&self, limit: Duration) {
        drop(self.shared.wait_while(limit, |seen| !seen.ended));
    }

    /// Waits for the end of the stream, at most `limit`, and takes all that it carried.
    pub(crate) fn finish(&mut self, limit: Duration) -> Vec<u8> {
        let mut seen = self.shared.wait_while(limit, |seen| !seen.ended);
        self.cursor = 0;
        mem::take(&mut seen.bytes)
    }
}

impl Shared {
    /// A reader that panicked leaves whole bytes behind, so a poisoned lock holds nothing broken.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, limit: Duration, waiting: impl FnMut(&mut Seen) -> bool) -> MutexGuard<'_, Seen> {
        let waited = self.grew.wait_timeout_while(self.seen(), limit, waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Write, pipe};

    const SOON: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn lines_come_one_by_one_and_the_last_needs_no_end() {
        let mut capture = Capture::start(&b"one\n\ntwo"[..]);
        let lines: Vec<_> = (0..4).map(|_| capture.next_line(LONG)).collect();
        assert_eq!(lines, [Ok("one".into()), Ok(String::new()), Ok("two".into()), Err(NoLine::Ended)]);
        assert_eq!(capture.finish(LONG), b"one\n\ntwo", "handing lines out takes nothing away");
    }

    #[test]
    fn half_a_line_is_not_handed_out_while_its_writer_lives() {
        let (reader, mut writer) = pipe().unwrap();
        let mut capture = Capture::start(reader);
        writer.write_all(b"ha").unwrap();
        assert_eq!(capture.next_line(SOON), Err(NoLine::TimedOut));
        writer.write_all(b"lf\n").unwrap();
        assert_eq!(capture.next_line(LONG), Ok("half".into()));
        assert_eq!(capture.finish(SOON), b"half\n", "a stream that does not end is given up on");
    }
}
