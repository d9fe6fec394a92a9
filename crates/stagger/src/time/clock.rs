//! Clocks, and points in time on them.

use core::time::Duration;
use std::sync::OnceLock;

use stagger_core::Instant;

/// A monotonic clock.
///
/// [`SystemClock`] is the default. [`testing::VirtualClock`](crate::testing::VirtualClock) is advanced by hand or by
/// sleeping on it. `&C` and `Arc<C>` of a clock are clocks, too.
pub trait Clock {
    /// Returns the current instant of this clock.
    fn now(&self) -> Instant;
}

/// The system's monotonic clock. It can represent instants up to a century before the first time this process reads it.
///
/// A reading takes 24 ns on a typical x86-64 machine. Whether it advances while the system is suspended depends on the
/// operating system, as for [`std::time::Instant`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The first reading of a clock. There is room below, because the call that a retry belongs to may have begun before
/// this process.
pub(crate) const MIDDLE: Instant = Instant::from_nanos(u64::MAX / 4);

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();
        MIDDLE.saturating_add(EPOCH.get_or_init(std::time::Instant::now).elapsed())
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Instant {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Instant {
        (**self).now()
    }
}

/// A point in time that can be the deadline of a call: an [`Instant`] of the call's clock, a [`std::time::Instant`], or
/// a [`tokio::time::Instant`](https://docs.rs/tokio/latest/tokio/time/struct.Instant.html) with the feature `tokio`.
///
/// An instant of another clock is converted once, by its distance from the present: five seconds ahead of it is five
/// seconds ahead on the call's clock. Tokio's present is virtual while tokio's time is paused.
///
/// ```
/// use std::time::Duration;
/// use stagger::testing::VirtualClock;
/// use stagger::time::{Clock, Deadline};
///
/// let clock = VirtualClock::new();
/// let passed = std::time::Instant::now();
/// assert!(passed.on_clock(&clock) <= clock.now());
/// assert!((passed + Duration::from_secs(5)).on_clock(&clock) > clock.now());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a point in time, as a deadline is",
    label = "expected an `Instant`",
    note = "for a length of time from now, use `.within(..)`; for the length of each attempt, use `.timeout(..)`"
)]
pub trait Deadline {
    /// Returns this point in time as an instant of `clock`. Saturates.
    fn on_clock(self, clock: &impl Clock) -> Instant;
}

impl Deadline for Instant {
    fn on_clock(self, _: &impl Clock) -> Instant {
        self
    }
}

impl Deadline for std::time::Instant {
    fn on_clock(self, clock: &impl Clock) -> Instant {
        let now = Self::now();
        moved(clock.now(), self.saturating_duration_since(now), now.saturating_duration_since(self))
    }
}

#[cfg(feature = "tokio")]
impl Deadline for tokio::time::Instant {
    fn on_clock(self, clock: &impl Clock) -> Instant {
        let now = Self::now();
        moved(clock.now(), self.saturating_duration_since(now), now.saturating_duration_since(self))
    }
}

/// Returns the instant that is `ahead` of `now`, or `behind` it; one of the two is zero.
fn moved(now: Instant, ahead: Duration, behind: Duration) -> Instant {
    let behind = u64::try_from(behind.as_nanos()).unwrap_or(u64::MAX);
    Instant::from_nanos(now.as_nanos().saturating_sub(behind)).saturating_add(ahead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::VirtualClock;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_instant_of_the_clock_is_not_converted() {
        let clock = VirtualClock::new();
        assert_eq!(Instant::from_nanos(7).on_clock(&clock), Instant::from_nanos(7));
    }

    #[test]
    fn a_distance_is_kept_in_both_directions_and_saturates() {
        let at = Instant::from_nanos;
        let now = at(5_000_000_000);
        for (ahead, behind, want) in [
            (Duration::ZERO, Duration::ZERO, now),
            (SECOND, Duration::ZERO, at(6_000_000_000)),
            (Duration::ZERO, SECOND, at(4_000_000_000)),
            (Duration::ZERO, 9 * SECOND, at(0)),
            (Duration::ZERO, Duration::MAX, at(0)),
            (Duration::MAX, Duration::ZERO, now.saturating_add(Duration::MAX)),
        ] {
            assert_eq!(moved(now, ahead, behind), want, "{ahead:?}, {behind:?}");
        }
    }

    /// The system's clock advances during the test, so the distance can only shrink.
    #[test]
    fn a_system_instant_is_converted_by_its_distance_from_now() {
        let clock = VirtualClock::new();
        let hour = 3_600 * SECOND;
        let read = std::time::Instant::now();
        let ahead = (read + hour).on_clock(&clock).saturating_since(clock.now());
        assert!(ahead <= hour && ahead >= hour.saturating_sub(read.elapsed()), "{ahead:?}");
        let behind = clock.now().saturating_since(read.on_clock(&clock));
        assert!(behind <= read.elapsed(), "{behind:?}");
    }

    #[cfg(feature = "tokio")]
    #[tokio::test(start_paused = true)]
    async fn a_tokio_instant_is_converted_exactly_while_time_is_paused() {
        use crate::time::Tokio;
        let deadline = tokio::time::Instant::now() + 5 * SECOND;
        let virtual_clock = VirtualClock::new();
        assert_eq!(deadline.on_clock(&Tokio).saturating_since(Tokio.now()), 5 * SECOND);
        tokio::time::advance(3 * SECOND).await;
        assert_eq!(deadline.on_clock(&Tokio).saturating_since(Tokio.now()), 2 * SECOND);
        assert_eq!(deadline.on_clock(&virtual_clock).saturating_since(virtual_clock.now()), 2 * SECOND);
        tokio::time::advance(3 * SECOND).await;
        assert_eq!(Tokio.now().saturating_since(deadline.on_clock(&Tokio)), SECOND);
    }
}
