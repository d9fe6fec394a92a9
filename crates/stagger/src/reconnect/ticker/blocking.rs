use core::fmt;
use core::time::Duration;

use stagger_core::{Ratio, Seed};

use super::state::{TickerState, TickerStep};
use super::ticker::Tick;
use super::ticker::steps;
use super::times::Periodic;
use super::times::Scheduled;
use super::times::Times;
use crate::retrier::handle::Retrier;
use crate::time::cancel::Cancel;
use crate::time::{BlockingSleep, ThreadSleep};

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
pub struct Ticker<S, T = ThreadSleep> {
    state: TickerState<S>,
    timer: T,
    cancel: Option<Cancel>,
}

impl Ticker<Scheduled> {
    /// Creates a ticker that follows a policy, or the policy of a [`Retrier`]; the current thread sleeps between ticks.
    #[must_use]
    pub fn new(retrier: impl Into<Retrier>) -> Self {
        Self::with_timer(ThreadSleep, retrier)
    }
}

steps!(BlockingSleep);

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

impl<S: Times, T: BlockingSleep> Ticker<S, T> {
    pub(crate) const fn from_times(times: S, timer: T) -> Self {
        Self { state: TickerState::new(times), timer, cancel: None }
    }

    /// Ends the ticker when this handle is cancelled: during a wait, or when the next tick is requested.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Stops the ticker: no further tick comes. Idempotent.
    pub fn stop(&mut self) {
        let _ = self.state.end();
    }

    fn wait(&mut self, length: Duration) {
        self.state.awaited();
        let mut left = Some(length);
        while let Some(length) = left {
            match &self.cancel {
                Some(cancel) => self.timer.sleep_unless(length, cancel),
                None => self.timer.sleep(length),
            }
            left = self.state.timer_fired(&self.timer);
        }
    }
}

impl<S: Times, T: BlockingSleep> Iterator for Ticker<S, T> {
    type Item = Tick;

    fn next(&mut self) -> Option<Tick> {
        loop {
            match self.state.next(&self.timer, Duration::ZERO) {
                TickerStep::Tick(tick) => return Some(tick),
                TickerStep::End => return None,
                TickerStep::Wait(length) => self.wait(length),
                TickerStep::Immediate => {}
                // The timer panicked during the wait, and the caller caught the panic.
                TickerStep::Waiting => {
                    if let Some(length) = self.state.timer_fired(&self.timer) {
                        self.wait(length);
                    }
                }
            }
            if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
                let _ = self.state.end();
            }
        }
    }
}

impl<S: Times, T: BlockingSleep> core::iter::FusedIterator for Ticker<S, T> {}
