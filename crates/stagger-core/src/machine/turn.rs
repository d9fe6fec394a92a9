use core::time::Duration;

use crate::guards::guard::{Guards, Limiter, LimiterPermit, Permits, Turn};
use crate::guards::now::{Now, Unread};
use crate::machine::decision::StopReason;
use crate::machine::retry::RetryMachine;
use crate::machine::state::{DECIDED, REPEATS};
use crate::numbers::instant::Instant;
use crate::outcome::Outcome;

/// The wait for a turn: that of the pacer, and the end of a quiet period.
impl RetryMachine<'_> {
    /// Asks the pacer and the quiet period whether the next attempt may start. Returns zero if it may: call [`begin`](Self::begin) next,
    /// without a wait between. Otherwise returns how long to wait before asking again. Meanwhile `permits` hold the place of
    /// the call among those that wait; to cancel it, release them with [`Guards::release`].
    ///
    /// Waiting uses no attempt and pays no budget. It counts as elapsed time.
    ///
    /// The pacer is asked first, and a turn that it gave is kept while the quiet period lets the call wait, so that calls come
    /// back from a pause at its pace.
    ///
    /// # Errors
    /// [`StopReason::Quiet`] or [`StopReason::Pacer`] if one of them rejects the attempt, because it holds no calls, or because
    /// its turn would come too late for the deadline or `max_elapsed`. [`StopReason::Deadline`] if the deadline has passed. The
    /// permits have then been released.
    #[inline]
    pub fn turn(
        &mut self,
        permits: &mut Permits,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_>,
    ) -> Result<Duration, StopReason> {
        if !guards.has_limiter() {
            return Ok(Duration::ZERO);
        }
        let now = Unread::new(now);
        self.start_clock(&now);
        let turn = self.ask_limiters(permits, &now, guards);
        if turn.is_err() {
            guards.release(Permits::take(permits));
        }
        turn
    }

    fn ask_limiters(&self, permits: &mut Permits, now: &dyn Now, guards: &Guards<'_>) -> Result<Duration, StopReason> {
        if self.deadline.is_some_and(|deadline| now.now() >= deadline) {
            return Err(StopReason::Deadline);
        }
        let latest = self.latest_start();
        if let Some(pacer) = guards.pacer {
            if let Some(wait) = ask(pacer, &mut permits.pacer, latest, now).ok_or(StopReason::Pacer)? {
                let would_be_rejected = guards.quiet.is_some_and(|quiet| quiet.would_reject(wait, latest, now));
                return if would_be_rejected { Err(StopReason::Quiet) } else { Ok(wait) };
            }
        }
        match guards.quiet {
            Some(quiet) => {
                let wait = ask(quiet, &mut permits.quiet, latest, now).ok_or(StopReason::Quiet)?;
                Ok(wait.unwrap_or_default())
            }
            None => Ok(Duration::ZERO),
        }
    }

    /// Takes back the start of an attempt that [`begin`](Self::begin) admitted and that was not made, if the quiet period has
    /// begun to hold calls since. The attempt keeps its number and what its budget charged; the breaker is asked again.
    /// Returns the permits to call [`turn`](Self::turn) with; the turn that the pacer gave is among them.
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
        let Permits { budget, breaker: admitted, quiet: permit, pacer } = permits;
        if let Some(breaker) = guards.breaker {
            breaker.record(admitted, &Outcome::Cancelled, &Unread::new(now));
        }
        if permit != LimiterPermit::NONE {
            quiet.release(permit);
        }
        self.state.flags |= REPEATS | DECIDED;
        Ok(Permits { budget, pacer, ..Permits::NONE })
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

/// Asks a limiter, and keeps the permit of its answer. Returns how long to wait, if so; `None` if it rejects the attempt.
#[inline]
fn ask(
    limiter: &dyn Limiter,
    permit: &mut LimiterPermit,
    latest: Option<Instant>,
    now: &dyn Now,
) -> Option<Option<Duration>> {
    match limiter.admit(core::mem::replace(permit, LimiterPermit::NONE), latest, now) {
        Turn::Now(given) => {
            *permit = given;
            Some(None)
        }
        Turn::Wait { after, permit: place } => {
            *permit = place;
            Some(Some(after.max(Duration::from_nanos(1))))
        }
        Turn::Rejected { .. } => None,
    }
}
