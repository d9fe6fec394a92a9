use core::fmt;
use core::time::Duration;

use super::beat::{Beat, Next};
use super::{Periodic, Scheduled, Tick, Times};
use crate::cancel::Cancelling;
use crate::future::Uncancelled;
use crate::{Cancel, Policy, Ratio, time::BlockingSleep, time::Entropy, time::ThreadSleep};

/// Ticks at the times that a schedule gives, in blocking code: an iterator, whose `next` sleeps until the tick.
///
/// Everything else is as with the async [`Ticker`](crate::reconnect::Ticker): the first tick comes at once, and at least one
/// comes; a delay runs from the moment when the next tick is asked for; it ends with the schedule, after
/// [`stop`](Self::stop), or when it is [`cancelled_by`](Self::cancelled_by) a handle. No thread is started.
///
/// ```
/// use stagger::{Policy, blocking, policy};
///
/// const WARM_UP: Policy = policy!(exponential(ms(1), ms(10)).max_attempts(5));
///
/// # let mut loads = 0; let mut load = || { loads += 1; loads >= 3 };
/// let ticks = blocking::Ticker::new(&WARM_UP).take_while(|_| !load()).count();
/// assert_eq!((ticks, loads), (2, 3));
/// ```
pub struct Ticker<S, T = ThreadSleep, N = Uncancelled> {
    beat: Beat<S>,
    timer: T,
    cancel: N,
}

impl<'p> Ticker<Scheduled<'p>> {
    /// Ticks at the times that this policy gives; the thread sleeps in between.
    #[must_use]
    pub fn new(policy: &'p Policy) -> Self {
        Self::with_timer(ThreadSleep, policy)
    }
}

impl<'p, T: BlockingSleep> Ticker<Scheduled<'p>, T> {
    /// Ticks at the times that this policy gives, on this timer.
    #[must_use]
    pub fn with_timer(timer: T, policy: &'p Policy) -> Self {
        Self::of(Scheduled::new(policy), timer)
    }
}

/// Ticks around a period, for ever, in blocking code: see the async [`interval`](crate::reconnect::interval()).
///
/// ```
/// use std::time::Duration;
/// use stagger::{Ratio, time::ThreadSleep, blocking};
///
/// let refresh = blocking::interval(Duration::from_millis(2), Ratio::percent(50), ThreadSleep);
/// assert_eq!(refresh.take(3).map(|tick| tick.number).collect::<Vec<_>>(), [1, 2, 3]);
/// ```
#[must_use = "a ticker does nothing unless asked"]
pub fn interval<T: BlockingSleep>(period: Duration, jitter: Ratio, timer: T) -> Ticker<Periodic, T> {
    Ticker::of(Periodic::new(period, jitter), timer)
}

impl<T, N> Ticker<Scheduled<'_>, T, N> {
    /// Draws the delays from this seed: they are those of [`Policy::delays`]. To be said before the first tick.
    #[must_use]
    pub fn seed(mut self, entropy: impl Entropy) -> Self {
        self.beat.times = self.beat.times.seeded(entropy.seed());
        self
    }
}

impl<T, N> Ticker<Periodic, T, N> {
    /// Draws the times from this seed. To be said before the first tick.
    #[must_use]
    pub fn seed(mut self, entropy: impl Entropy) -> Self {
        self.beat.times = self.beat.times.seeded(entropy.seed());
        self
    }

    /// The first tick comes within this length of time, besides its jitter. Default: one period. To be said before
    /// the first tick.
    #[must_use]
    pub fn spread(mut self, spread: Duration) -> Self {
        self.beat.times = self.beat.times.spread(spread);
        self
    }
}

impl<S: Times, T: BlockingSleep> Ticker<S, T> {
    pub(crate) const fn of(times: S, timer: T) -> Self {
        Self { beat: Beat::new(times), timer, cancel: Uncancelled }
    }
}

impl<S: Times, T: BlockingSleep, N> Ticker<S, T, N> {
    /// Ends it when this handle is cancelled: in the middle of a wait, or when the next tick is asked for.
    pub fn cancelled_by(self, cancel: &Cancel) -> Ticker<S, T, &Cancel> {
        Ticker { beat: self.beat, timer: self.timer, cancel }
    }

    /// No further tick comes; stopping twice is as good as once.
    pub fn stop(&mut self) {
        let _ = self.beat.end();
    }

    /// Begins the schedule again: see the async [`reset`](crate::reconnect::Ticker::reset).
    pub fn reset(&mut self) {
        self.beat.restart(&self.timer);
    }

    /// How many ticks were given.
    #[must_use]
    pub const fn ticks(&self) -> u64 {
        self.beat.given()
    }

    pub(crate) const fn times(&self) -> &S {
        &self.beat.times
    }
}

impl<S: Times, T: BlockingSleep, N: Cancelling> Iterator for Ticker<S, T, N> {
    type Item = Tick;

    fn next(&mut self) -> Option<Tick> {
        loop {
            match self.beat.next(&self.timer, Duration::ZERO) {
                Next::Tick(tick) => return Some(tick),
                Next::End => return None,
                Next::Wait(length) => {
                    match self.cancel.handle() {
                        Some(cancel) => self.timer.sleep_unless(length, cancel),
                        None => self.timer.sleep(length),
                    }
                    self.beat.woken();
                }
                Next::AtOnce => {}
                // The timer panicked in the wait, and somebody caught it.
                Next::Waiting => self.beat.woken(),
            }
            if self.cancel.is_cancelled() {
                let _ = self.beat.end();
            }
        }
    }
}

impl<S: Times, T: BlockingSleep, N: Cancelling> core::iter::FusedIterator for Ticker<S, T, N> {}

impl<S: fmt::Debug, T, N> fmt::Debug for Ticker<S, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker").field("beat", &self.beat).finish_non_exhaustive()
    }
}
