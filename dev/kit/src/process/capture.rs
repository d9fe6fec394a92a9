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

/// The captured output of a stream, read by a thread so that a full pipe never blocks the child.
#[derive(Debug)]
pub(crate) struct Capture {
    shared: Arc<Shared>,
    /// Offset of the next line.
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
    /// No line arrived within the limit.
    TimedOut,
}

impl Capture {
    /// Starts a thread that reads `source`.
    pub(crate) fn start(mut source: impl Read + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let filled = Arc::clone(&shared);
        thread::spawn(move || {
            let mut chunk = [0; 16 * 1024];
            // A read error on a pipe is equivalent to its end.
            while let Ok(length @ 1..) = source.read(&mut chunk) {
                filled.seen().bytes.extend_from_slice(&chunk[..length]);
                filled.grew.notify_all();
            }
            filled.seen().ended = true;
            filled.grew.notify_all();
        });
        Self { shared, cursor: 0 }
    }

    /// Waits for the next line and returns it without its newline, which the last line may lack. Replaces invalid
    /// UTF-8.
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

    /// Returns all output so far, including lines already returned.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shared.seen().bytes).into_owned()
    }

    /// Waits for the end of the stream, for at most `limit`.
    pub(crate) fn wait_for_end(&self, limit: Duration) {
        drop(self.shared.wait_while(limit, |seen| !seen.ended));
    }

    /// Waits for the end of the stream, for at most `limit`, and returns all its output.
    pub(crate) fn finish(&mut self, limit: Duration) -> Vec<u8> {
        let mut seen = self.shared.wait_while(limit, |seen| !seen.ended);
        self.cursor = 0;
        mem::take(&mut seen.bytes)
    }
}

impl Shared {
    /// Locks the captured output. A poisoned lock is ignored: the output is valid even if the reader has panicked.
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
    fn lines_are_returned_one_by_one_and_the_last_needs_no_newline() {
        let mut capture = Capture::start(&b"one\n\ntwo"[..]);
        let lines: Vec<_> = (0..4).map(|_| capture.next_line(LONG)).collect();
        assert_eq!(lines, [Ok("one".into()), Ok(String::new()), Ok("two".into()), Err(NoLine::Ended)]);
        assert_eq!(capture.finish(LONG), b"one\n\ntwo", "returning lines does not consume the output");
    }

    #[test]
    fn an_incomplete_line_is_not_returned_before_the_end() {
        let (reader, mut writer) = pipe().unwrap();
        let mut capture = Capture::start(reader);
        writer.write_all(b"ha").unwrap();
        assert_eq!(capture.next_line(SOON), Err(NoLine::TimedOut));
        writer.write_all(b"lf\n").unwrap();
        assert_eq!(capture.next_line(LONG), Ok("half".into()));
        assert_eq!(capture.finish(SOON), b"half\n", "a stream that does not end is abandoned after the limit");
    }
}
