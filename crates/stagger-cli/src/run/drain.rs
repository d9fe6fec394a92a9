use core::time::Duration;

use stagger_core::Instant;

/// How long the streams of a command that has ended are still read.
///
/// What it wrote is in the pipes or has been read. A process of the background that has inherited a stream keeps it
/// open, perhaps for ever; it is not waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    idle_deadline: Instant,
    limit: u64,
    done: bool,
}

/// Streams that bring nothing for this long are left.
const IDLE_LIMIT: Duration = Duration::from_millis(200);
/// What a pipe can hold at limit (Linux: `pipe-max-size`) may have been written before the end; more than that was not.
const PIPE_CAPACITY: u64 = 1024 * 1024;

impl Drain {
    /// The command has ended; so many bytes were bytes_seen of it.
    pub(super) fn start(now: Instant, bytes_seen: u64) -> Self {
        Self {
            idle_deadline: now.saturating_add(IDLE_LIMIT),
            limit: bytes_seen.saturating_add(2 * PIPE_CAPACITY),
            done: false,
        }
    }

    /// Something was read, or at last taken by a slow reader. Whether to go on.
    pub(super) fn on_progress(&mut self, now: Instant, bytes_seen: u64) -> bool {
        self.idle_deadline = now.saturating_add(IDLE_LIMIT);
        bytes_seen <= self.limit
    }

    /// The streams were asked, and had nothing.
    pub(super) fn on_idle(&mut self, now: Instant) {
        self.done = now >= self.idle_deadline;
    }

    /// When to ask the streams for the last time.
    pub(super) fn idle_deadline(&self) -> Instant {
        self.idle_deadline
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_stream_is_left_although_it_is_never_quiet() {
        let at = |ms| Instant::ZERO.saturating_add(Duration::from_millis(ms));
        let mut drain = Drain::start(at(0), 500);
        assert_eq!(drain.idle_deadline(), at(200));
        assert!(drain.on_progress(at(150), 500 + 2 * PIPE_CAPACITY));
        assert_eq!(drain.idle_deadline(), at(350));
        assert!(!drain.on_progress(at(300), 501 + 2 * PIPE_CAPACITY));
    }

    /// A busy machine may leave us no time to read for longer than that.
    #[test]
    fn a_stream_that_was_not_asked_is_not_quiet() {
        let at = |ms| Instant::ZERO.saturating_add(Duration::from_millis(ms));
        let mut drain = Drain::start(at(0), 0);
        drain.on_idle(at(199));
        assert!(!drain.is_done());
        assert!(drain.on_progress(at(5_000), 10));
        assert!(!drain.is_done());
        drain.on_idle(at(5_200));
        assert!(drain.is_done());
    }
}
