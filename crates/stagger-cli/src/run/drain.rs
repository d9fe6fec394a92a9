use core::time::Duration;

use stagger_core::Instant;

/// How long the streams of a command that has ended are still read.
///
/// What it wrote is in the pipes or has been read. A process of the background that has inherited a stream keeps it
/// open, perhaps for ever; it is not waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    quiet_at: Instant,
    most: u64,
    over: bool,
}

/// Streams that bring nothing for this long are left.
const QUIET: Duration = Duration::from_millis(200);
/// What a pipe can hold at most (Linux: `pipe-max-size`) may have been written before the end; more than that was not.
const PIPE_HOLDS: u64 = 1024 * 1024;

impl Drain {
    /// The command has ended; so many bytes were seen of it.
    pub(super) fn begin(now: Instant, seen: u64) -> Self {
        Self { quiet_at: now.saturating_add(QUIET), most: seen.saturating_add(2 * PIPE_HOLDS), over: false }
    }

    /// Something was read, or at last taken by a slow reader. Whether to go on.
    pub(super) fn moved(&mut self, now: Instant, seen: u64) -> bool {
        self.quiet_at = now.saturating_add(QUIET);
        seen <= self.most
    }

    /// The streams were asked, and had nothing.
    pub(super) fn nothing_came(&mut self, now: Instant) {
        self.over = now >= self.quiet_at;
    }

    /// When to ask the streams for the last time.
    pub(super) fn quiet_at(&self) -> Instant {
        self.quiet_at
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_stream_is_left_although_it_is_never_quiet() {
        let at = |ms| Instant::ZERO.saturating_add(Duration::from_millis(ms));
        let mut drain = Drain::begin(at(0), 500);
        assert_eq!(drain.quiet_at(), at(200));
        assert!(drain.moved(at(150), 500 + 2 * PIPE_HOLDS));
        assert_eq!(drain.quiet_at(), at(350));
        assert!(!drain.moved(at(300), 501 + 2 * PIPE_HOLDS));
    }

    /// A busy machine may leave us no time to read for longer than that.
    #[test]
    fn a_stream_that_was_not_asked_is_not_quiet() {
        let at = |ms| Instant::ZERO.saturating_add(Duration::from_millis(ms));
        let mut drain = Drain::begin(at(0), 0);
        drain.nothing_came(at(199));
        assert!(!drain.is_over());
        assert!(drain.moved(at(5_000), 10));
        assert!(!drain.is_over());
        drain.nothing_came(at(5_200));
        assert!(drain.is_over());
    }
}
