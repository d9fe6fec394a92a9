//! How a call waits for its retrier's quiet period.

use core::time::Duration;

use stagger_core::StopReason;
use stagger_core::machine::RetryMachine;

use super::machine::{Call, Phase};
use super::options::Options;
use super::permits::{PermitSlot, PermitStage};
use crate::error::rejected::Rejected;
use crate::testing;
use crate::time::Clock;

/// The call waits for a quiet period to end. Beside the flags of [`machine`](super::machine) and [`wait`](super::wait).
const HELD: u8 = 32;

impl<X: Options, C: Clock + Clone> Call<X, C> {
    /// Asks the quiet period whether the next attempt may start: zero if it may, otherwise how long to wait before asking
    /// again. Call [`begin`](Self::begin) after zero.
    ///
    /// # Errors
    /// The reason to stop, and the rejection to return if there is no error of an earlier attempt.
    #[inline]
    pub(crate) fn turn(&mut self) -> Result<Duration, (StopReason, Rejected)> {
        if X::PLAIN || self.options.guards().quiet.is_none() {
            return Ok(Duration::ZERO);
        }
        self.guarded_turn()
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

    /// Returns whether the call waits for a quiet period to end.
    #[inline]
    pub(crate) const fn is_held(&self) -> bool {
        self.flags & HELD != 0
    }
}
