//! Ticks in async code, and what the async and the blocking ticker share.

use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use stagger_core::{Instant, Ratio, Seed};

use super::state::{TickerState, TickerStep};
use super::times::{Periodic, Scheduled, Times};
use crate::call::coop;
use crate::retrier::handle::Retrier;
use crate::time::Sleep;
use crate::time::cancel::Uncancelled;

/// Ticks on a policy's schedule: the first tick immediately, each later one after the next delay.
///
/// For work that repeats until it succeeds and must not be in phase with other processes: filling a cache, probing
/// whether a server is healthy again, a scheduled job. It ends when the schedule ends, by `max_attempts` (ticks) or
/// `max_elapsed`, after [`stop`](Self::stop), or when the future passed to [`cancelled_by`](Self::cancelled_by)
/// completes. For a steady period see [`interval`].
///
/// - There is at least one tick, even if the ticker was cancelled before. Only the policy's `spread`, which is waited
///   for before the first tick, can be cut off.
/// - A delay runs from the moment the next tick is requested, and no tick is buffered. However long the work takes, two
///   runs never follow each other without the delay in between.
/// - [`tick`](Self::tick) is cancel-safe, and with the feature `stream` a ticker is a `Stream`. Dropping a ticker drops
///   its timer; nothing else is running.
/// - A tick is not an attempt of a call: calls made while it ticks retry on their own.
///
/// In blocking code: [`blocking::Ticker`](crate::blocking::Ticker).
///
/// ```
/// use stagger::{Policy, reconnect::Ticker, policy};
///
/// const WARM_UP: Policy = policy!(exponential(ms(1), ms(10)).max_attempts(5));
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// # let mut loads = 0; let mut load = async || { loads += 1; loads >= 3 };
/// let mut ticker = Ticker::new(&WARM_UP);
/// while let Some(_) = ticker.tick().await {
///     if load().await {
///         break;
///     }
/// }
/// assert_eq!(ticker.ticks(), 3);
/// # });
/// ```
pub struct Ticker<S, T: Sleep, N = Uncancelled> {
    state: TickerState<S>,
    timer: T,
    sleeping: Option<T::Sleeping>,
    cancel: N,
}

#[cfg(feature = "tokio")]
impl Ticker<Scheduled, crate::time::Tokio> {
    /// Creates a ticker that follows a policy, or the policy of a [`Retrier`], on tokio's timer.
    #[must_use]
    pub fn new(retrier: impl Into<Retrier>) -> Self {
        Self::with_timer(crate::time::Tokio, retrier)
    }
}

steps!(Sleep, N);

/// Creates an endless ticker with a period, which spreads the work of a fleet evenly over time.
///
/// Each process has its own grid of times. Point `k` is at `start + U[0, spread] + k · period`, and its tick is drawn
/// uniformly from `±jitter · period` around it (precisely: from the point to twice that much after it). Every tick has
/// its own draw. The first draw, the [`spread`](Ticker::spread), which is a whole period by default, keeps processes
/// that were started together out of phase.
///
/// - There is no drift: neither the jitter nor the duration of the work moves the grid.
/// - Ticks keep their order: a jitter above one half is treated as one half, which draws each tick from its whole
///   period.
/// - Missed ticks are skipped. If tick times pass without a request, the next tick is the next one due, and reports how
///   many were [`missed`](Tick::missed). A process that was suspended does not resume with a burst, and neither do a
///   thousand of them. When a tick is awaited and its wait turns out to have ended more than a second ago, it does not
///   come at once: if more ticks were missed, the next one due comes instead, and otherwise this one, after a random
///   part of the time for which it is late.
/// - A period of zero is treated as one nanosecond.
///
/// ```
/// use std::time::Duration;
/// use stagger::{Ratio, time::Tokio, reconnect::interval};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let mut refresh = interval(Duration::from_secs(60), Ratio::percent(10), Tokio);
/// let first = refresh.tick().await.unwrap();
/// let second = refresh.tick().await.unwrap();
/// let apart = second.at.saturating_since(first.at);
/// assert!((Duration::from_secs(48)..=Duration::from_secs(73)).contains(&apart), "{apart:?}");
/// # });
/// ```
#[must_use = "a ticker does nothing unless asked"]
pub fn interval<T: Sleep>(period: Duration, jitter: Ratio, timer: T) -> Ticker<Periodic, T> {
    Ticker::from_times(Periodic::new(period, jitter), timer)
}

impl<S: Times, T: Sleep> Ticker<S, T> {
    pub(crate) const fn from_times(times: S, timer: T) -> Self {
        Self { state: TickerState::new(times), timer, sleeping: None, cancel: Uncancelled }
    }
}

impl<S: Times, T: Sleep, N> Ticker<S, T, N> {
    /// Ends the ticker when this future completes: during a wait, or when the next tick is requested. The future is
    /// boxed.
    pub fn cancelled_by<N2: Future>(self, cancel: N2) -> Ticker<S, T, Pin<Box<N2>>> {
        Ticker { state: self.state, timer: self.timer, sleeping: self.sleeping, cancel: Box::pin(cancel) }
    }

    /// Stops the ticker: no further tick comes. Idempotent.
    pub fn stop(&mut self) {
        let _ = self.state.end();
        self.sleeping = None;
    }
}

impl<S: Times, T: Sleep, N: Future + Unpin> Ticker<S, T, N> {
    /// Waits for the next tick. Returns `None` when the ticker has ended, and from then on.
    ///
    /// Cancel-safe: if it is dropped while it waits, the next call continues the same wait.
    pub async fn tick(&mut self) -> Option<Tick> {
        self.state.requested();
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick; see [`tick`](Self::tick).
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Option<Tick>> {
        loop {
            match self.state.next(&self.timer, self.timer.resolution()) {
                TickerStep::Tick(tick) => return Poll::Ready(Some(tick)),
                TickerStep::End => {
                    self.sleeping = None;
                    return Poll::Ready(None);
                }
                TickerStep::Immediate => {
                    if self.check_cancelled(cx) {
                        continue;
                    }
                    if coop::should_yield(self.state.yielded() as u32) {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                TickerStep::Wait(length) => match &mut self.sleeping {
                    Some(sleeping) => self.timer.rearm(sleeping, length),
                    None => self.sleeping = Some(self.timer.sleep(length)),
                },
                TickerStep::Waiting => {
                    if self.check_cancelled(cx) {
                        continue;
                    }
                    if let Some(sleeping) = &mut self.sleeping {
                        if Pin::new(sleeping).poll(cx).is_pending() {
                            self.state.awaited();
                            return Poll::Pending;
                        }
                    }
                    let again = self.state.timer_fired(&self.timer);
                    if let (Some(length), Some(sleeping)) = (again, &mut self.sleeping) {
                        self.timer.rearm(sleeping, length);
                    }
                }
            }
        }
    }

    /// Returns whether the caller has cancelled, and ends the ticker if so: the future is not polled again.
    fn check_cancelled(&mut self, cx: &mut Context<'_>) -> bool {
        let ends = Pin::new(&mut self.cancel).poll(cx).is_ready();
        if ends {
            let _ = self.state.end();
        }
        ends
    }
}

/// Nothing is pinned structurally.
impl<S, T: Sleep, N: Unpin> Unpin for Ticker<S, T, N> {}

#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl<S: Times, T: Sleep, N: Future + Unpin> futures_core::Stream for Ticker<S, T, N> {
    type Item = Tick;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Tick>> {
        self.get_mut().poll_tick(cx)
    }
}

/// One tick of a ticker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tick {
    /// Number of the tick, from 1.
    pub number: u64,
    /// Instant at which the tick was yielded, on the clock of the ticker's timer.
    pub at: Instant,
    /// Ticks of an [`interval`](crate::reconnect::interval) that were skipped before this one, because they were not
    /// requested in time. Always 0 for a ticker that follows a policy, because its delays run from the request.
    pub missed: u64,
}

/// Implements for `Ticker` everything but ticking and cancellation.
macro_rules! steps {
    ($Timer:ident $(, $N:ident)?) => {
        impl<T: $Timer> Ticker<Scheduled, T> {
            /// Creates a ticker that follows a policy, or the policy of a [`Retrier`], on this timer. The retrier's
            /// listeners receive every wait, under its name. Its guards do not apply: a tick is not an attempt.
            #[must_use]
            pub fn with_timer(timer: T, retrier: impl Into<Retrier>) -> Self {
                Self::from_times(Scheduled::new(retrier.into()), timer)
            }
        }

        impl<T: $Timer $(, $N)?> Ticker<Periodic, T $(, $N)?> {
            /// Sets the time within which the first tick comes, not counting its jitter. Default: one period. Call it
            /// before the first tick.
            #[must_use]
            pub fn spread(mut self, spread: Duration) -> Self {
                self.state.times.spread = spread;
                self
            }
        }

        impl<S: Times, T: $Timer $(, $N)?> Ticker<S, T $(, $N)?> {
            /// Sets the seed that the ticks are drawn from; with a policy, its delays equal those of
            /// [`Policy::delays`](crate::Policy::delays). Call it before the first tick.
            ///
            /// Tickers that share a seed tick in lockstep: use it for tests and reports.
            #[must_use]
            pub fn seed(mut self, seed: Seed) -> Self {
                self.state.times.set_seed(seed);
                self
            }

            /// Restarts the schedule, as if the latest tick had been the first. The next tick comes after the first
            /// delay, counted from its request; for an interval, one period from now. Limits on ticks and time restart,
            /// too. A ticker that has ended stays ended.
            pub fn reset(&mut self) {
                self.state.restart(&self.timer);
            }

            /// Returns the number of ticks yielded.
            #[must_use]
            pub const fn ticks(&self) -> u64 {
                self.state.yielded()
            }
        }

        impl<S: fmt::Debug, T: $Timer $(, $N)?> fmt::Debug for Ticker<S, T $(, $N)?> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Ticker").field("state", &self.state).finish_non_exhaustive()
            }
        }
    };
}

pub(super) use steps;
