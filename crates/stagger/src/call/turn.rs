//! How a call waits for its retrier's pacer and quiet period.

use core::time::Duration;

use stagger_core::StopReason;
use stagger_core::guard::LimiterPermit;
use stagger_core::machine::RetryMachine;

use super::machine::{Call, Phase};
use super::options::{Options, RetrierSource, Through};
use super::permits::{PermitSlot, PermitStage};
use crate::error::rejected::Rejected;
use crate::retrier::event::{Action, Listen};
use crate::testing;
use crate::time::Clock;

/// The call waits for its turn. Beside the flags of [`machine`](super::machine) and [`wait`](super::wait).
const HELD: u8 = 32;

impl<X: Options, C: Clock + Clone> Call<X, C> {
    /// Asks the pacer and the quiet period whether the next attempt may start: zero if it may, otherwise how long to wait before asking
    /// again. Call [`begin`](Self::begin) after zero.
    ///
    /// # Errors
    /// The reason to stop, and the rejection to return if there is no error of an earlier attempt.
    #[inline]
    pub(crate) fn turn<L: Listen>(&mut self, listener: &L) -> Result<Duration, (StopReason, Rejected)> {
        if X::PLAIN || !self.options.guards().has_limiter() { Ok(Duration::ZERO) } else { self.limited_turn(listener) }
    }

    // Two functions, neither of which is inlined: a call without a limiter has no code for them, and one whose limiters hold
    // no calls saves no registers for the second.
    #[inline(never)]
    fn limited_turn<L: Listen>(&mut self, listener: &L) -> Result<Duration, (StopReason, Rejected)> {
        if self.may_start_at_once() { Ok(Duration::ZERO) } else { self.observed_turn(listener) }
    }

    #[inline(never)]
    fn observed_turn<L: Listen>(&mut self, listener: &L) -> Result<Duration, (StopReason, Rejected)> {
        let was_held = self.is_held();
        let turn = self.guarded_turn();
        match &turn {
            Ok(after) if !was_held && !after.is_zero() => self.emit(listener, Action::Held { after: *after }, None),
            Ok(after) if was_held && after.is_zero() => self.emit(listener, Action::Resumed, None),
            _ => {}
        }
        turn
    }

    /// Takes the turn of an attempt that has not asked for one, if the limiters let every attempt start.
    #[inline]
    fn may_start_at_once(&mut self) -> bool {
        if self.is_held() || !self.permits.has_no_turn() {
            return false;
        }
        let admitted = self.options.guards().admit_if_open();
        admitted.is_some_and(|turn| {
            self.permits.add_turn(turn);
            true
        })
    }

    fn guarded_turn(&mut self) -> Result<Duration, (StopReason, Rejected)> {
        self.flags &= !HELD;
        // A test whose sleeps are skipped would ask forever.
        if testing::sleeps_are_skipped() {
            return Ok(Duration::ZERO);
        }
        let (nested, mut permits) = (self.nested(), self.permits.take());
        let clock = &self.clock;
        let guards = self.options.guards().nested(nested);
        let turn = RetryMachine::new(self.options.policy(), &mut self.state, self.seed)
            .deadline(self.options.deadline())
            .turn(&mut permits, || clock.now(), &guards);
        match turn {
            Ok(wait) => {
                self.permits.put(permits, PermitStage::Waiting, nested, &self.options, &self.clock);
                self.flags |= if wait.is_zero() { 0 } else { HELD };
                Ok(wait)
            }
            Err(stop) => {
                self.phase = Phase::Ended;
                Err((stop, self.rejection(stop)))
            }
        }
    }

    /// Takes back the attempt that has begun and was not made, if the quiet period has begun to hold calls since. Returns
    /// whether it did: call [`turn`](Self::turn) again then.
    pub(crate) fn postpone(&mut self) -> bool {
        if self.options.guards().quiet.is_none() {
            return false;
        }
        let (nested, permits) = (self.nested(), self.permits.take());
        let clock = &self.clock;
        let guards = self.options.guards().nested(nested);
        let postponed = RetryMachine::new(self.options.policy(), &mut self.state, self.seed).postpone(
            permits,
            || clock.now(),
            &guards,
        );
        let (permits, stage) = match postponed {
            Ok(permits) => {
                self.phase = Phase::Due;
                (permits, PermitStage::Waiting)
            }
            Err(permits) => (permits, PermitStage::Admitted),
        };
        self.permits.put(permits, stage, nested, &self.options, &self.clock);
        stage == PermitStage::Waiting
    }

    /// Returns whether the quiet period holds an attempt that has not asked it.
    pub(crate) fn may_not_begin_unasked(&self) -> bool {
        self.options.guards().quiet.is_some_and(|quiet| !quiet.is_current(&LimiterPermit::NONE))
    }

    /// Returns whether the call waits for its turn.
    #[inline]
    pub(crate) const fn is_held(&self) -> bool {
        self.flags & HELD != 0
    }
}

impl<R: RetrierSource, C: Clock + Clone> Call<Through<R>, C> {
    /// Makes the permits that the call holds know the guards that it uses by now.
    #[cold]
    pub(crate) fn replace_guard_source(&mut self) {
        let source = &self.options.retrier;
        self.permits.replace_guard_source(|| source.clone());
    }
}
