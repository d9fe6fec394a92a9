use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use super::beat::{Beat, Next};
use super::{Periodic, Scheduled, Tick, Times};
use crate::future::Uncancelled;
use crate::{Policy, Ratio, fairness, time::Entropy, time::Sleep};

/// Ticks at the times that a schedule gives: the first at once, each further one after the next delay.
///
/// For what is done again and again until it works, and must not be done in step with everybody else: filling a
/// cache, looking whether a server is healthy again, a job that is due. It ends when the schedule ends, by
/// `max_attempts` (ticks) or `max_elapsed`, after [`stop`](Self::stop), or when what it is
/// [`cancelled_by`](Self::cancelled_by) is ready. For a steady period see [`interval`].
///
/// - At least one tick comes, even if it was cancelled before. Only a `spread` of the policy, which is waited for
///   before the first tick, can be cut short.
/// - A delay runs from the moment when the next tick is asked for, and no tick is kept in store. So however long the
///   work takes, two pieces of it never follow one another without the delay in between.
/// - [`tick`](Self::tick) is cancel-safe, and with the feature `stream` a ticker is a `Stream`. Dropping a ticker
///   drops its timer, and nothing else is running.
/// - It is no attempt of a call: calls that are made while it ticks retry by themselves.
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
    beat: Beat<S>,
    timer: T,
    sleeping: Option<T::Sleeping>,
    cancel: N,
}

#[cfg(feature = "tokio")]
impl<'p> Ticker<Scheduled<'p>, crate::time::Tokio> {
    /// Ticks at the times that this policy gives, on tokio's timer.
    #[must_use]
    pub fn new(policy: &'p Policy) -> Self {
        Self::with_timer(crate::time::Tokio, policy)
    }
}

impl<'p, T: Sleep> Ticker<Scheduled<'p>, T> {
    /// Ticks at the times that this policy gives, on this timer.
    #[must_use]
    pub fn with_timer(timer: T, policy: &'p Policy) -> Self {
        Self::of(Scheduled::new(policy), timer)
    }
}

/// Ticks around a period, for ever: the work of a fleet, spread evenly over time.
///
/// Each process has a grid of its own. Point `k` of it is at `start + U[0, spread] + k · period`, and the tick of
/// point `k` is drawn uniformly from `±jitter · period` around it (to be exact: from the point to twice that much
/// after it). The draws are made anew for every tick, and the first one, the [`spread`](Ticker::spread), which is a
/// whole period unless told otherwise, is what keeps processes that were started together out of step.
///
/// - There is no drift: neither the jitter nor the time that the work takes moves the grid.
/// - Ticks keep their order: a jitter above one half is taken for one half, which draws each tick from its whole
///   period.
/// - What is missed is left out. Ticks whose time passed while nobody asked are not made up for: the next tick is the
///   next one to come, and says how many it has [`missed`](Tick::missed). So a process that was suspended does not
///   come back with a burst, and neither do a thousand of them.
/// - A period of zero is taken for a nanosecond.
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
    Ticker::of(Periodic::new(period, jitter), timer)
}

impl<T: Sleep, N> Ticker<Scheduled<'_>, T, N> {
    /// Draws the delays from this seed: they are those of [`Policy::delays`]. To be said before the first tick.
    ///
    /// Tickers that share a seed tick in step: it is for tests and reports.
    #[must_use]
    pub fn seed(mut self, entropy: impl Entropy) -> Self {
        self.beat.times = self.beat.times.seeded(entropy.seed());
        self
    }
}

impl<T: Sleep, N> Ticker<Periodic, T, N> {
    /// Draws the times from this seed. To be said before the first tick.
    ///
    /// Tickers that share a seed tick in step: it is for tests and reports.
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

impl<S: Times, T: Sleep> Ticker<S, T> {
    pub(crate) const fn of(times: S, timer: T) -> Self {
        Self { beat: Beat::new(times), timer, sleeping: None, cancel: Uncancelled }
    }
}

impl<S: Times, T: Sleep, N> Ticker<S, T, N> {
    /// Ends it when this future is ready: in the middle of a wait, or when the next tick is asked for. The future has
    /// to be `Unpin`: box or pin what is not.
    pub fn cancelled_by<N2: Future + Unpin>(self, cancel: N2) -> Ticker<S, T, N2> {
        Ticker { beat: self.beat, timer: self.timer, sleeping: self.sleeping, cancel }
    }

    /// No further tick comes; stopping twice is as good as once.
    pub fn stop(&mut self) {
        let _ = self.beat.end();
        self.sleeping = None;
    }

    /// Begins the schedule again, as if the tick that was given last had been the first: the next one comes after the
    /// first delay, counted from the moment when it is asked for; that of an interval, one period from now. Limits of
    /// ticks and of time begin again too. One that has ended stays ended.
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

impl<S: Times, T: Sleep, N: Future + Unpin> Ticker<S, T, N> {
    /// The next tick; `None` when there is none left, and from then on.
    ///
    /// Cancel-safe: dropped in a wait, it goes on with the same wait when it is called again.
    pub async fn tick(&mut self) -> Option<Tick> {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// [`tick`](Self::tick), to be polled.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Option<Tick>> {
        loop {
            match self.beat.next(&self.timer, self.timer.resolution()) {
                Next::Tick(tick) => return Poll::Ready(Some(tick)),
                Next::End => {
                    self.sleeping = None;
                    return Poll::Ready(None);
                }
                Next::AtOnce => {
                    if self.ends(cx) {
                        continue;
                    }
                    if fairness::is_over(self.beat.given() as u32) {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                Next::Wait(length) => match &mut self.sleeping {
                    Some(sleeping) => self.timer.rearm(sleeping, length),
                    None => self.sleeping = Some(self.timer.sleep(length)),
                },
                Next::Waiting => {
                    if self.ends(cx) {
                        continue;
                    }
                    if let Some(sleeping) = &mut self.sleeping {
                        ready!(Pin::new(sleeping).poll(cx));
                    }
                    self.beat.woken();
                }
            }
        }
    }

    /// Whether the caller wants an end, which it then is: the future is not asked again.
    fn ends(&mut self, cx: &mut Context<'_>) -> bool {
        let ends = Pin::new(&mut self.cancel).poll(cx).is_ready();
        if ends {
            let _ = self.beat.end();
        }
        ends
    }
}

/// What is polled in place is `Unpin` by itself.
impl<S, T: Sleep, N: Unpin> Unpin for Ticker<S, T, N> {}

#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl<S: Times, T: Sleep, N: Future + Unpin> futures_core::Stream for Ticker<S, T, N> {
    type Item = Tick;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Tick>> {
        self.get_mut().poll_tick(cx)
    }
}

impl<S: fmt::Debug, T: Sleep, N> fmt::Debug for Ticker<S, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker").field("beat", &self.beat).finish_non_exhaustive()
    }
}
