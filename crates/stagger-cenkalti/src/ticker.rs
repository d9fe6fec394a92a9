use core::time::Duration;

use super::BackOff;
use crate::ticker::Times;
use crate::{blocking, reconnect::Ticker, time::BlockingSleep, time::Clock, time::Sleep};

/// Creates a ticker that follows a backoff, which is reset: the package's `NewTicker`.
///
/// There is at least one tick, immediately, even if the ticker was cancelled before. The ticker ends when the backoff
/// does, or when it is stopped or cancelled. Stopping is idempotent.
///
/// ```
/// use stagger::cenkalti::{self, ExponentialBackOff};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// # let mut calls = 0; let mut operation = async || { calls += 1; if calls < 3 { Err("refused") } else { Ok("hello") } };
/// let mut ticker = cenkalti::new_ticker(ExponentialBackOff::new());
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
#[must_use]
pub fn new_ticker<B: BackOff>(backoff: B) -> Ticker<B, crate::time::Tokio> {
    new_ticker_with_timer(backoff, crate::time::Tokio)
}

/// Creates a ticker that follows a backoff, which is reset, on this timer: the package's `NewTickerWithTimer`.
#[must_use]
pub fn new_ticker_with_timer<B: BackOff, T: Sleep>(mut backoff: B, timer: T) -> Ticker<B, T> {
    backoff.reset();
    Ticker::from_times(backoff, timer)
}

impl<B: BackOff> Times for B {
    fn first(&mut self, _: &impl Clock, _: Duration) -> Duration {
        Duration::ZERO
    }

    fn ticked(&mut self, _: &impl Clock) -> u64 {
        0
    }

    fn next(&mut self, _: &impl Clock, _: Duration) -> Option<Duration> {
        self.next_backoff()
    }

    fn restart(&mut self, _: &impl Clock) {
        self.reset();
    }
}

impl<B: BackOff, T: Sleep, N> Ticker<B, T, N> {
    /// Returns the backoff, to read its elapsed time.
    #[must_use]
    pub const fn backoff(&self) -> &B {
        self.times()
    }
}

impl<B: BackOff, T: BlockingSleep, N> blocking::Ticker<B, T, N> {
    /// Returns the backoff, to read its elapsed time.
    #[must_use]
    pub const fn backoff(&self) -> &B {
        self.times()
    }
}
