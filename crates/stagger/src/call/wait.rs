//! What a call knows of its current wait: until when a hint forbids the retry, and whether the wait was overslept.

use core::time::Duration;

use stagger_core::machine::RetryMachine;

use super::machine::Call;
use super::not_before::NotBefore;
use super::options::Options;
use crate::time::Clock;

/// `not_before` is set, because a hint determined the current wait; [`remaining_wait`](Call::remaining_wait) clears it.
const HINTED: u8 = 8;
/// `not_before` is set, to find out how late the timer fires; [`remaining_wait`](Call::remaining_wait) clears it.
const WATCHED: u8 = 16;

/// The shortest wait that is spread again after a pause. What shorter ones are spread over is hardly longer, and they save
/// two readings of the clock.
const SHORTEST_WATCHED: Duration = Duration::from_millis(100);

impl<X: Options, C: Clock + Clone> Call<X, C> {
    /// Remembers the end of a wait that a hint asked for.
    #[cold]
    pub(super) fn set_not_before(&mut self, wait: Duration) {
        self.not_before = NotBefore::after(wait, self.clock.now());
        self.flags |= HINTED;
    }

    /// Remembers the end of a wait that begins now, so that it can be spread again if it is overslept.
    #[inline]
    pub(crate) fn watch_wait(&mut self, wait: Duration) {
        if wait >= SHORTEST_WATCHED && self.flags & HINTED == 0 {
            self.set_watched(wait);
        }
    }

    // Out of line, or calls without delays would pay for it in registers.
    #[cold]
    #[inline(never)]
    fn set_watched(&mut self, wait: Duration) {
        self.not_before = NotBefore::after(wait, self.clock.now());
        self.flags |= WATCHED;
    }

    /// Forgets a wait that is not waited to its end.
    pub(crate) const fn forget_wait(&mut self) {
        self.flags &= !(HINTED | WATCHED);
    }

    /// Returns for how long to wait again after the timer has fired. Of a wait that a hint asked for, something may be left:
    /// a timer may fire early, and such a retry must not start early. A wait that ended long ago is spread again, once.
    #[inline]
    pub(crate) fn remaining_wait(&mut self) -> Option<Duration> {
        if self.flags & (HINTED | WATCHED) == 0 { None } else { self.watched_wait() }
    }

    #[cold]
    fn watched_wait(&mut self) -> Option<Duration> {
        let now = self.clock.now();
        if self.flags & HINTED != 0 {
            let left = self.not_before.remaining(now);
            if !left.is_zero() {
                return Some(left);
            }
        }
        self.forget_wait();
        let late = self.not_before.late(now);
        if late.as_secs() == 0 {
            return None;
        }
        self.draw_seed();
        RetryMachine::new(self.options.policy(), &mut self.state, self.seed)
            .deadline(self.options.deadline())
            .strategy(self.options.strategy())
            .spread_again(late, now)
    }
}
