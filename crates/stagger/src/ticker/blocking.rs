use core::fmt;
use core::time::Duration;

use super::state::{TickerState, TickerStep};
use super::{Periodic, Scheduled, Tick, Times};
use crate::cancel::Cancelling;
use crate::future::Uncancelled;
use crate::{Cancel, Policy, Ratio, time::BlockingSleep, time::Entropy, time::ThreadSleep};

/// Ticks on a policy's schedule, in blocking code: an iterator whose `next` sleeps until the tick.
///
/// It works like the async [`Ticker`](crate::reconnect::Ticker): the first tick comes immediately, and there is at
/// least one; a delay runs from the moment the next tick is requested; it ends with the schedule, after
/// [`stop`](Self::stop), or when the handle passed to [`cancelled_by`](Self::cancelled_by) is cancelled. No thread is
/// started.
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
    state: TickerState<S>,
    timer: T,
    cancel: N,
}

impl<'p> Ticker<Scheduled<'p>> {
    /// Creates a ticker that follows this policy; the current thread sleeps between ticks.
    #[must_use]
    pub fn new(policy: &'p Policy) -> Self {
        Self::with_timer(ThreadSleep, policy)
    }
}

impl<'p, T: BlockingSleep> Ticker<Scheduled<'p>, T> {
    /// Creates a ticker that follows this policy, on this timer.
    #[must_use]
    pub fn with_timer(timer: T, policy: &'p Policy) -> Self {
        Self::from_times(Scheduled::new(policy), timer)
    }
}

/// Creates an endless ticker with a period, in blocking code; see the async [`interval`](crate::reconnect::interval()).
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
    Ticker::from_times(Periodic::new(period, jitter), timer)
}

impl<T, N> Ticker<Scheduled<'_>, T, N> {
    /// Sets the seed that the delays are drawn from; they equal those of [`Policy::delays`]. Call it before the first
    /// tick.
    #[must_use]
    pub fn seed(mut self, entropy: impl Entropy) -> Self {
        self.state.times = self.state.times.with_seed(entropy.seed());
        self
    }
}

impl<T, N> Ticker<Periodic, T, N> {
    /// Sets the seed that the tick times are drawn from. Call it before the first tick.
    #[must_use]
    pub fn seed(mut self, entropy: impl Entropy) -> Self {
        self.state.times = self.state.times.with_seed(entropy.seed());
        self
    }

    /// Sets the time within which the first tick comes, not counting its jitter. Default: one period. Call it before
    /// the first tick.
    #[must_use]
    pub fn spread(mut self, spread: Duration) -> Self {
        self.state.times = self.state.times.spread(spread);
        self
    }
}

impl<S: Times, T: BlockingSleep> Ticker<S, T> {
    pub(crate) const fn from_times(times: S, timer: T) -> Self {
        Self { state: TickerState::new(times), timer, cancel: Uncancelled }
    }
}

impl<S: Times, T: BlockingSleep, N> Ticker<S, T, N> {
    /// Ends the ticker when this handle is cancelled: during a wait, or when the next tick is requested.
    pub fn cancelled_by(self, cancel: &Cancel) -> Ticker<S, T, &Cancel> {
        Ticker { state: self.state, timer: self.timer, cancel }
    }

    /// Stops the ticker: no further tick comes. Idempotent.
    pub fn stop(&mut self) {
        let _ = self.state.end();
    }

    /// Restarts the schedule: see the async [`reset`](crate::reconnect::Ticker::reset).
    pub fn reset(&mut self) {
        self.state.restart(&self.timer);
    }

    /// Returns the number of ticks yielded.
    #[must_use]
    pub const fn ticks(&self) -> u64 {
        self.state.yielded()
    }
}

impl<S: Times, T: BlockingSleep, N: Cancelling> Iterator for Ticker<S, T, N> {
    type Item = Tick;

    fn next(&mut self) -> Option<Tick> {
        loop {
            match self.state.next(&self.timer, Duration::ZERO) {
                TickerStep::Tick(tick) => return Some(tick),
                TickerStep::End => return None,
                TickerStep::Wait(length) => {
                    match self.cancel.handle() {
                        Some(cancel) => self.timer.sleep_unless(length, cancel),
                        None => self.timer.sleep(length),
                    }
                    self.state.timer_fired();
                }
                TickerStep::Immediate => {}
                // The timer panicked during the wait, and the caller caught the panic.
                TickerStep::Waiting => self.state.timer_fired(),
            }
            if self.cancel.is_cancelled() {
                let _ = self.state.end();
            }
        }
    }
}

impl<S: Times, T: BlockingSleep, N: Cancelling> core::iter::FusedIterator for Ticker<S, T, N> {}

impl<S: fmt::Debug, T, N> fmt::Debug for Ticker<S, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker").field("state", &self.state).finish_non_exhaustive()
    }
}
