use core::time::Duration;

use crate::guards::guard::{Guards, LimiterPermit, Now, Permits, Turn, Unread};
use crate::machine::decision::StopReason;
use crate::machine::retry::RetryMachine;
use crate::machine::state::{DECIDED, REPEATS};
use crate::numbers::instant::Instant;
use crate::outcome::Outcome;

/// The wait for a quiet period to end.
impl RetryMachine<'_> {
    /// Asks the quiet period whether the next attempt may start. Returns zero if it may: call [`begin`](Self::begin) next,
    /// without a wait between. Otherwise returns how long to wait before asking again. Meanwhile `permits` hold the place of
    /// the call among those that wait; to cancel it, release them with [`Guards::release`].
    ///
    /// Waiting uses no attempt and pays no budget. It counts as elapsed time.
    ///
    /// # Errors
    /// [`StopReason::Quiet`] if the quiet period rejects the attempt, because it holds no calls, or because its turn would
    /// come too late for the deadline or `max_elapsed`. [`StopReason::Deadline`] if the deadline has passed. The permits
    /// have then been released.
    #[inline]
    pub fn turn(
        &mut self,
        permits: &mut Permits,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_>,
    ) -> Result<Duration, StopReason> {
        let Some(quiet) = guards.quiet else { return Ok(Duration::ZERO) };
        let now = Unread::new(now);
        self.start_clock(&now);
        let stop = if self.deadline.is_some_and(|deadline| now.now() >= deadline) {
            StopReason::Deadline
        } else {
            match quiet.admit(core::mem::replace(&mut permits.quiet, LimiterPermit::NONE), self.latest_start(), &now) {
                Turn::Now(permit) => {
                    permits.quiet = permit;
                    return Ok(Duration::ZERO);
                }
                Turn::Wait { after, permit } => {
                    permits.quiet = permit;
                    return Ok(after.max(Duration::from_nanos(1)));
                }
                Turn::Rejected { .. } => StopReason::Quiet,
            }
        };
        guards.release(Permits::take(permits));
        Err(stop)
    }

    /// Takes back the start of an attempt that [`begin`](Self::begin) admitted and that was not made, if the quiet period has
    /// begun to hold calls since. The attempt keeps its number and what its budget charged; the breaker is asked again.
    /// Returns the permits to call [`turn`](Self::turn) with.
    ///
    /// # Errors
    /// The permits, unchanged, if the attempt may begin.
    pub fn postpone(
        &mut self,
        permits: Permits,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_>,
    ) -> Result<Permits, Permits> {
        let Some(quiet) = guards.quiet.filter(|quiet| !quiet.is_current(&permits.quiet)) else { return Err(permits) };
        let Permits { budget, breaker: admitted, quiet: permit } = permits;
        if let Some(breaker) = guards.breaker {
            breaker.record(admitted, &Outcome::Cancelled, &Unread::new(now));
        }
        if permit != LimiterPermit::NONE {
            quiet.release(permit);
        }
        self.state.flags |= REPEATS | DECIDED;
        Ok(Permits { budget, ..Permits::NONE })
    }

    /// Returns the latest time at which the limits let an attempt start. `None` if there is no limit.
    pub(super) fn latest_start(&self) -> Option<Instant> {
        let elapsed = match (self.policy.max_elapsed(), self.state.start()) {
            (Some(limit), Some(start)) => Some(start.saturating_add(limit)),
            _ => None,
        };
        // An attempt may start at the end of `max_elapsed`, but not at the deadline.
        let deadline = self.deadline.map(|deadline| Instant::from_nanos(deadline.as_nanos().saturating_sub(1)));
        match (elapsed, deadline) {
            (Some(elapsed), Some(deadline)) => Some(elapsed.min(deadline)),
            (elapsed, deadline) => elapsed.or(deadline),
        }
    }
}
