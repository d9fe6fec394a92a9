//! Waits whose timers fire long after their end.

use core::time::Duration;

use crate::machine::retry::RetryMachine;
use crate::numbers::instant::{Instant, nanos};
use crate::numbers::random::Purpose;
use crate::numbers::random::draw_nanos;

/// How late a timer is, at most, without a pause: a busy runtime fires timers late, too.
const PUNCTUAL: Duration = Duration::from_secs(1);

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

impl RetryMachine<'_> {
    /// Returns another wait if the timer of the wait before the coming attempt fired more than a second `late`; see
    /// [`spread_again`]. It is spread over the longest delay that the policy could have drawn, but not beyond the deadline
    /// or `max_elapsed`.
    ///
    /// If the deadline passed during the pause, there is no other wait, and [`begin`](Self::begin) stops. A `max_elapsed`
    /// that passed does not shorten the wait, because it limits only the decision to retry, which was made before. With a
    /// [strategy](Self::strategy) the span is its last delay.
    #[cold]
    #[must_use]
    pub fn spread_again(&self, late: Duration, now: Instant) -> Option<Duration> {
        // The bounds of decorrelated jitter take time proportional to the number.
        let span = match (self.state.retry_number().min(65_536), self.strategy) {
            (0, _) => self.policy.spread(),
            (_, Some(_)) => Duration::from_nanos(self.state.carry as u64),
            (number, None) => self.policy.bounds(number).map_or(Duration::ZERO, |(_, longest)| longest),
        };
        let until_deadline = self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_since(now));
        let until_elapsed = match (self.policy.max_elapsed(), self.state.start()) {
            (Some(limit), Some(start)) => start.saturating_add(limit).saturating_since(now),
            _ => Duration::ZERO,
        };
        let until_elapsed = if until_elapsed.is_zero() { Duration::MAX } else { until_elapsed };
        let bits = self.seed.bits(u32::from(self.state.episode), self.state.retry_number(), Purpose::Again);
        spread_again(late, span.min(until_elapsed).min(until_deadline), bits)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::guards::guard::{Guards, Permits};
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
