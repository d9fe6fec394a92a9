//! The waits of a call: for its turn, on a timer with ticks, and again if the timer fired late.

use core::ops::Deref;
use core::time::Duration;

use super::decision::{DelaySource, StopReason};
use super::retry::RetryMachine;
use super::state::DECIDED;
use crate::guards::guard::{Ask, Guard, Guards, Permits};
use crate::guards::now::{Now, Unread};
use crate::numbers::instant::{Instant, nanos};
use crate::numbers::random::{Purpose, draw_nanos};

/// The waits before an attempt.
impl RetryMachine<'_> {
    /// Returns the wait before the first attempt: uniform on `[0, spread]`, and never past the deadline. It counts as
    /// elapsed time: a time limit runs from this call.
    #[inline]
    pub fn spread(&mut self, now: impl FnOnce() -> Instant) -> Duration {
        if self.policy.spread().is_zero() {
            return Duration::ZERO;
        }
        let now = Unread::new(now);
        self.start_clock(&now);
        let mut spread = self.policy.spread();
        if let Some(deadline) = self.deadline {
            spread = spread.min(deadline.saturating_since(now.now()));
        }
        Duration::from_nanos(self.draw_spread(spread, 0))
    }

    /// Starts the next attempt if the guards let it, which are asked in their order: returns zero then. Otherwise
    /// returns how long to wait before asking again. Meanwhile `permits` hold the place of the attempt, and what the
    /// guards before have granted; to cancel it, give them back with [`Guards::release`]. `permits` are those of the
    /// last decision or turn; [`Permits::NONE`] at first.
    ///
    /// Waiting uses no attempt and reserves nothing. It counts as elapsed time.
    ///
    /// # Errors
    /// [`StopReason::Guard`] if one of them rejects the attempt, for instance because its turn would come too late for
    /// the deadline or `max_elapsed`. [`StopReason::Deadline`] if the deadline has passed. The permits have then been
    /// given back.
    #[inline]
    pub fn turn(
        &mut self,
        permits: &mut Permits,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> Result<Duration, StopReason> {
        self.start(permits, &Unread::new(now), guards)
    }

    /// Starts the attempt if the guards let it that have not done so yet.
    #[inline]
    pub(super) fn start(
        &mut self,
        permits: &mut Permits,
        now: &impl Now,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> Result<Duration, StopReason> {
        self.start_clock(now);
        if self.is_past_deadline(now) {
            guards.give_back(Permits::take(permits), now);
            return Err(StopReason::Deadline);
        }
        let wait = if guards.is_unguarded() {
            Duration::ZERO
        } else {
            let ask = Ask { is_first: self.state.flags & DECIDED == 0, latest: self.latest_start() };
            guards.ask(permits, ask, now)?
        };
        if wait.is_zero() {
            self.count_attempt();
        }
        Ok(wait)
    }

    /// Returns how long the coming attempt may take: the time left until the deadline. `None` if there is no deadline.
    /// `max_elapsed` is not a deadline: it interrupts no attempt.
    #[inline]
    #[must_use]
    pub fn remaining(&self, now: impl FnOnce() -> Instant) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_since(now()))
    }

    /// Returns the length to request from a timer that fires only at multiples of `resolution`, for this wait.
    ///
    /// A hint is kept as it is, because a timer never fires early. Any other delay is moved to one of the two
    /// neighboring ticks, with the probability that preserves the mean: with a 1 ms timer, 200 µs become no wait in
    /// four cases of five and one tick otherwise, where the timer alone would always take one or two ticks. The
    /// returned length lies just after the beginning of the last tick, because the timer fires at the tick's end. Zero
    /// means that no timer is needed.
    #[inline]
    #[must_use]
    pub fn on_ticks(&self, after: Duration, source: DelaySource, resolution: Duration) -> Duration {
        let tick = nanos(resolution);
        if tick <= 1 || after.is_zero() || source == DelaySource::Hint {
            return after;
        }
        let after = nanos(after);
        let up = draw_nanos(0, tick - 1, self.bits(Purpose::Dither)) < after % tick;
        match after / tick + u64::from(up) {
            0 => Duration::ZERO,
            ticks => Duration::from_nanos((ticks - 1) * tick + 1),
        }
    }

    /// Returns another wait if the timer of the wait before the coming attempt fired more than a second `late`; see
    /// [`spread_again`]. It is spread over the longest delay that the policy could have drawn, but not beyond the
    /// deadline or `max_elapsed`.
    ///
    /// If the deadline passed during the pause, there is no other wait, and [`begin`](Self::begin) stops. A
    /// `max_elapsed` that passed does not shorten the wait, because it limits only the decision to retry, which was
    /// made before. With a [strategy](Self::strategy) the span is its last delay.
    #[cold]
    #[must_use]
    pub fn spread_again(&self, late: Duration, now: Instant) -> Option<Duration> {
        // The bounds of decorrelated jitter take time proportional to the number.
        let number = self.state.retry_number().min(65_536);
        let mut span = if number == 0 {
            self.policy.spread()
        } else if self.strategy.is_some() {
            Duration::from_nanos(self.state.carry as u64)
        } else {
            match self.policy.bounds(number) {
                Some((_, longest)) => longest,
                None => Duration::ZERO,
            }
        };
        if let Some(deadline) = self.deadline {
            span = span.min(deadline.saturating_since(now));
        }
        if let (Some(limit), Some(start)) = (self.policy.max_elapsed(), self.state.start()) {
            let left = start.saturating_add(limit).saturating_since(now);
            if !left.is_zero() {
                span = span.min(left);
            }
        }
        spread_again(late, span, self.bits(Purpose::Again))
    }

    /// Returns the latest time at which the limits let an attempt start. `None` if there is no limit.
    #[must_use]
    pub fn latest_start(&self) -> Option<Instant> {
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

/// Returns another wait if a timer fired more than a second `late`: uniform on `[0, min(late, span)]`.
///
/// The machine has slept then, or the process was stopped, and all timers that came due meanwhile fire in the same
/// instant. The clients that share a server are spread again, over `span`, but none of them over more than the time for
/// which it is late already. `bits` are the random bits of the draw. Spread a wait once: if timers are always late, the
/// attempt must come nevertheless.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::machine::spread_again;
///
/// let (span, bits) = (Duration::from_secs(10), u64::MAX / 2);
/// assert_eq!(spread_again(Duration::from_secs(1), span, bits), None);
/// assert_eq!(spread_again(Duration::from_secs(3600), span, bits), Some(Duration::from_secs(5)));
/// ```
#[must_use]
pub fn spread_again(late: Duration, span: Duration, bits: u64) -> Option<Duration> {
    if late <= PUNCTUAL {
        return None;
    }
    match draw_nanos(0, nanos(span.min(late)), bits) {
        0 => None,
        wait => Some(Duration::from_nanos(wait)),
    }
}

/// How late a timer is, at most, without a pause: a busy runtime fires timers late, too.
const PUNCTUAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::machine::state::RetryState;
    use crate::numbers::random::Seed;
    use crate::outcome::Outcome;
    use crate::policy::Policy;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_wait_is_spread_over_no_more_than_its_lateness_and_its_span() {
        for late in [1.001, 2.0, 10.0, 3_600.0].map(Duration::from_secs_f64) {
            for span in [Duration::from_nanos(1), SECOND, 10 * SECOND, Duration::MAX] {
                let longest = spread_again(late, span, u64::MAX).expect("the greatest draw");
                assert_eq!(longest, span.min(late), "{late:?} late, {span:?}");
            }
            assert_eq!(spread_again(late, Duration::ZERO, u64::MAX), None);
        }
        assert_eq!(spread_again(SECOND, SECOND, u64::MAX), None);
    }

    /// Returns the waits of a thousand calls that wait for their second attempt, and wake up `late`.
    fn waits(policy: &Policy, deadline: Option<Instant>, late: Duration) -> Vec<Duration> {
        let wait = |seed| {
            let mut state = RetryState::started(at(0));
            let mut retry = RetryMachine::new(policy, &mut state, Seed::new(seed)).deadline(deadline);
            let permit = retry.begin(Permits::NONE, || at(0), &Guards::none()).expect("no guard");
            let _ = retry.decide(Outcome::TRANSIENT, permit, || at(0), &Guards::none());
            retry.spread_again(late, Instant::ZERO.saturating_add(late)).unwrap_or_default()
        };
        (0..1_000).map(wait).collect()
    }

    #[test]
    fn the_span_is_the_longest_delay_within_the_limits_that_are_left() {
        let policy = Policy::exponential(8 * SECOND, 60 * SECOND).build().expect("a policy");
        let limited = Policy::exponential(8 * SECOND, 60 * SECOND).max_elapsed(20 * SECOND).build().expect("a policy");
        let (short, long) = (17 * SECOND, 3_600 * SECOND);
        for (policy, deadline, late, span) in [
            (&policy, None, long, 8),
            (&policy, None, 5 * SECOND, 5),
            (&policy, Some(at(20)), short, 3),
            (&policy, Some(at(20)), long, 0),
            (&limited, None, short, 3),
            (&limited, None, long, 8),
        ] {
            let waits = waits(policy, deadline, late);
            let longest = waits.iter().max().copied().unwrap_or_default();
            assert!(longest <= span * SECOND, "{policy}, {late:?} late: {longest:?}");
            assert!(longest >= span * SECOND / 10 * 9, "{policy}, {late:?} late: {longest:?}");
        }
    }
}
