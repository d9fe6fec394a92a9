//! The async ticker, and the state that it shares with the blocking one.

use core::fmt;
use core::future::{Future, Pending, pending, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use stagger::Instant;
#[cfg(feature = "tokio")]
use stagger::time::Tokio;
use stagger::time::{Clock, Sleep};

use crate::backoff::BackOff;
use crate::retry::ATTEMPTS_PER_YIELD;

/// Creates a ticker that follows a backoff, which is reset: the package's `NewTicker`.
///
/// There is at least one tick, immediately, even if the ticker was cancelled before. The ticker ends when the backoff
/// does, or when it is stopped or cancelled. Stopping is idempotent.
///
/// ```
/// use stagger_cenkalti::{self as backoff, ExponentialBackOff};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// # let mut calls = 0;
/// # let mut operation = async || { calls += 1; if calls < 3 { Err("refused") } else { Ok("hello") } };
/// let mut ticker = backoff::new_ticker(ExponentialBackOff::new());
/// let mut answer = Err("never called");
/// while let Some(_) = ticker.tick().await {
///     answer = operation().await;
///     match answer {
///         Ok(_) => ticker.stop(),
///         Err(error) => eprintln!("{error}, after {:?}: will retry...", ticker.backoff().elapsed()),
///     }
/// }
/// assert_eq!(answer, Ok("hello"));
/// # });
/// ```
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
#[must_use]
pub fn new_ticker<B: BackOff>(backoff: B) -> Ticker<B, Tokio> {
    new_ticker_with_timer(backoff, Tokio)
}

/// Creates a ticker that follows a backoff, which is reset, on this timer: the package's `NewTickerWithTimer`.
#[must_use]
pub fn new_ticker_with_timer<B: BackOff, T: Sleep>(backoff: B, timer: T) -> Ticker<B, T> {
    Ticker { state: TickerState::new(backoff), timer, sleeping: None, cancel: pending() }
}

/// Ticks on the delays of a backoff: the package's `Ticker`.
///
/// The first tick comes immediately. A delay runs from the moment the next tick is requested, and no tick is buffered.
/// With the feature `stream` a ticker is a `Stream`. Dropping it drops its timer; nothing else is running.
pub struct Ticker<B, T: Sleep, N = Pending<()>> {
    state: TickerState<B>,
    timer: T,
    sleeping: Option<T::Sleeping>,
    cancel: N,
}

impl<B: BackOff, T: Sleep, N> Ticker<B, T, N> {
    /// Ends the ticker when this future completes: during a wait, or when the next tick is requested. The future must
    /// be `Unpin`: box or pin one that is not.
    pub fn cancelled_by<N2: Future + Unpin>(self, cancel: N2) -> Ticker<B, T, N2> {
        Ticker { state: self.state, timer: self.timer, sleeping: self.sleeping, cancel }
    }

    /// Stops the ticker: no further tick comes. Idempotent.
    pub fn stop(&mut self) {
        self.state.phase = Phase::Ended;
        self.sleeping = None;
    }

    /// Resets the backoff, as if the latest tick had been the first. A ticker that has ended stays ended.
    pub fn reset(&mut self) {
        self.state.reset();
    }

    /// Returns the number of ticks yielded.
    #[must_use]
    pub const fn ticks(&self) -> u64 {
        self.state.ticks
    }

    /// Returns the backoff, to read its elapsed time.
    #[must_use]
    pub const fn backoff(&self) -> &B {
        &self.state.backoff
    }
}

impl<B: BackOff, T: Sleep, N: Future + Unpin> Ticker<B, T, N> {
    /// Waits for the next tick, and returns its instant on the clock of the timer. Returns `None` when the ticker has
    /// ended, and from then on.
    ///
    /// Cancel-safe: if it is dropped while it waits, the next call continues the same wait.
    pub async fn tick(&mut self) -> Option<Instant> {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick; see [`tick`](Self::tick).
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        loop {
            match self.state.phase {
                Phase::Due => return Poll::Ready(Some(self.state.emit(&self.timer))),
                Phase::Ended => return Poll::Ready(None),
                Phase::Yielded => match self.state.backoff.next_backoff() {
                    None => self.stop(),
                    Some(delay) if delay.is_zero() => {
                        self.state.phase = Phase::Due;
                        let yields = self.state.ticks % u64::from(ATTEMPTS_PER_YIELD) == 0;
                        if !self.check_cancelled(cx) && yields {
                            cx.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                    }
                    Some(delay) => {
                        self.state.phase = Phase::Waiting;
                        match &mut self.sleeping {
                            Some(sleeping) => self.timer.rearm(sleeping, delay),
                            None => self.sleeping = Some(self.timer.sleep(delay)),
                        }
                    }
                },
                Phase::Waiting => {
                    if self.check_cancelled(cx) {
                        continue;
                    }
                    if let Some(sleeping) = &mut self.sleeping {
                        ready!(Pin::new(sleeping).poll(cx));
                    }
                    self.state.phase = Phase::Due;
                }
            }
        }
    }

    /// Returns whether the caller has cancelled, and ends the ticker if so: the future is not polled again.
    fn check_cancelled(&mut self, cx: &mut Context<'_>) -> bool {
        let ends = Pin::new(&mut self.cancel).poll(cx).is_ready();
        if ends {
            self.stop();
        }
        ends
    }
}

/// Nothing is pinned structurally.
impl<B, T: Sleep, N: Unpin> Unpin for Ticker<B, T, N> {}

#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl<B: BackOff, T: Sleep, N: Future + Unpin> futures_core::Stream for Ticker<B, T, N> {
    type Item = Instant;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.get_mut().poll_tick(cx)
    }
}

impl<B: fmt::Debug, T: Sleep, N> fmt::Debug for Ticker<B, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker").field("state", &self.state).finish_non_exhaustive()
    }
}

/// The state of a ticker.
#[derive(Clone, Debug)]
pub(crate) struct TickerState<B> {
    pub(crate) backoff: B,
    pub(crate) phase: Phase,
    /// Number of ticks yielded.
    pub(crate) ticks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The tick is yielded at the next request.
    Due,
    /// A tick was yielded, and the next one has not been requested.
    Yielded,
    /// A timer is running.
    Waiting,
    Ended,
}

impl<B: BackOff> TickerState<B> {
    /// Creates the state of a ticker whose first tick is due.
    pub(crate) fn new(mut backoff: B) -> Self {
        backoff.reset();
        Self { backoff, phase: Phase::Due, ticks: 0 }
    }

    /// Yields a tick, and returns its instant.
    pub(crate) fn emit(&mut self, clock: &impl Clock) -> Instant {
        self.phase = Phase::Yielded;
        self.ticks = self.ticks.saturating_add(1);
        clock.now()
    }

    pub(crate) fn reset(&mut self) {
        // Before the first tick the backoff has its initial state.
        if self.ticks > 0 && self.phase != Phase::Ended {
            self.backoff.reset();
            self.phase = Phase::Yielded;
        }
    }
}
