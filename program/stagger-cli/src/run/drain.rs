use core::time::Duration;

use stagger_core::Instant;

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
