//! How a call waits: for the end of a delay, which a hint may have set and the machine may have overslept, and for its
//! turn with the guards.

use core::time::Duration;

use stagger_core::StopReason;
use stagger_core::machine::RetryMachine;

use super::machine::{Call, Phase};
use super::not_before::NotBefore;
use super::options::Options;
use super::permits::{PermitSlot, PermitStage};
use super::retrier_options::{RetrierOptions, RetrierSource};
use crate::error::rejected::Rejected;
use crate::retrier::event::{Action, Listen};
use crate::time::Clock;

/// `not_before` is set, because a hint determined the current wait; [`remaining_wait`](Call::remaining_wait) clears it.
const HINTED: u8 = 8;
/// `not_before` is set, to find out how late the timer fires; [`remaining_wait`](Call::remaining_wait) clears it.
const WATCHED: u8 = 16;

/// The shortest wait that is spread again after a pause. What shorter ones are spread over is hardly longer, and they
/// save two readings of the clock.
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

    /// Returns for how long to wait again after the timer has fired. Of a wait that a hint asked for, something may be
    /// left: a timer may fire early, and such a retry must not start early. A wait that ended long ago is spread again,
    /// once.
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

/// The call waits for its turn. Beside the flags of [`machine`](super::machine) and [`wait`](super::wait).
const HELD: u8 = 32;
/// A guard that would let the attempt wait rejects it.
const REJECTS_WAITS: u8 = 64;

impl<X: Options, C: Clock + Clone> Call<X, C> {
    /// Starts the next attempt if the deadline and the guards let it: zero then, otherwise how long to wait before
    /// asking again.
    ///
    /// # Errors
    /// The reason to stop, and the rejection to return if there is no error of an earlier attempt.
    #[inline]
    pub(crate) fn turn<L: Listen>(&mut self, listener: &L) -> Result<Duration, (StopReason, Rejected)> {
        if X::PLAIN || self.options.is_unguarded() {
            return self.begin().map(|()| Duration::ZERO);
        }
        self.observed_turn(listener)
    }

    #[inline(never)]
    fn observed_turn<L: Listen>(&mut self, listener: &L) -> Result<Duration, (StopReason, Rejected)> {
        if self.flags & REJECTS_WAITS != 0 {
            return self.begin().map(|()| Duration::ZERO);
        }
        let was_held = self.is_held();
        let turn = self.turn_unheard();
        match &turn {
            Ok(after) if !was_held && !after.is_zero() => self.emit(listener, Action::Held { after: *after }, None),
            Ok(after) if was_held && after.is_zero() => self.emit(listener, Action::Resumed, None),
            _ => {}
        }
        turn
    }

    /// Asks like [`turn`](Self::turn), without an event.
    pub(crate) fn turn_unheard(&mut self) -> Result<Duration, (StopReason, Rejected)> {
        self.flags &= !HELD;
        let nested = self.nested();
        let mut permits = self.permits.take();
        let clock = &self.clock;
        let guards = self.options.guards().nested(nested);
        let turn = RetryMachine::new(self.options.policy(), &mut self.state, self.seed)
            .deadline(self.options.deadline())
            .turn(&mut permits, || clock.now(), &guards);
        match turn {
            Ok(wait) => {
                self.permits.put(permits, PermitStage::Waiting, nested, &self.options, &self.clock);
                if wait.is_zero() {
                    self.phase = Phase::Attempting;
                } else {
                    self.flags |= HELD;
                }
                Ok(wait)
            }
            Err(stop) => {
                self.phase = Phase::Ended;
                Err((stop, self.rejection(stop)))
            }
        }
    }

    /// Lets a guard reject an attempt that it would let wait.
    pub(crate) const fn reject_waits(&mut self) {
        self.flags |= REJECTS_WAITS;
    }

    /// Returns whether the call waits for its turn.
    #[inline]
    pub(crate) const fn is_held(&self) -> bool {
        self.flags & HELD != 0
    }
}

impl<R: RetrierSource, C: Clock + Clone> Call<RetrierOptions<R>, C> {
    /// Makes the permits that the call holds know the guards that it uses by now.
    #[cold]
    pub(crate) fn replace_guard_source(&mut self) {
        let source = &self.options.source;
        self.permits.replace_guard_source(|| source.clone());
    }
}
