//! The exponential backoff. Its arithmetic is the package's, in its order: `f64` within each step, whole nanoseconds in
//! between.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use stagger::Instant;
use stagger::time::{Clock, SystemClock};

use crate::backoff::BackOff;
use crate::options::{ExponentialBackOffOptions, OptionsError, Parameters, Random, Seeded};

/// A backoff with exponentially growing intervals, randomized waits, and a limit on the elapsed time.
///
/// [`next_backoff`](BackOff::next_backoff) does the following, in this order:
///
/// 1. Read the time elapsed since the last reset.
/// 2. Draw the wait: `trunc(lo + r · (hi − lo + 1))`, with `r` in `[0, 1)`, and `lo` and `hi` the interval minus and
///    plus its share given by the randomization factor; exactly the interval if that factor is 0.
/// 3. Advance the interval: to the longest one if `interval >= max_interval / multiplier`, else to `trunc(interval ·
///    multiplier)`.
/// 4. Return `None` if `elapsed + wait > max_elapsed_time`.
///
/// All values are whole nanoseconds. The longest interval caps the interval, not the wait: with the defaults a wait may
/// take 90 s, plus one nanosecond for the most extreme draw. The first interval is not capped.
///
/// The package's own example, with its defaults, in seconds as its documentation prints them (truncated at each step,
/// so up to 0.1 % short). The tenth request exceeds the elapsed time:
///
/// ```
/// use std::time::Duration;
/// use stagger_cenkalti::{BackOff, ExponentialBackOff};
///
/// let documented = [
///     // request, interval, randomized interval
///     (1, 0.5, [0.25, 0.75]),
///     (2, 0.75, [0.375, 1.125]),
///     (3, 1.125, [0.562, 1.687]),
///     (4, 1.687, [0.8435, 2.53]),
///     (5, 2.53, [1.265, 3.795]),
///     (6, 3.795, [1.897, 5.692]),
///     (7, 5.692, [2.846, 8.538]),
///     (8, 8.538, [4.269, 12.807]),
///     (9, 12.807, [6.403, 19.210]),
/// ];
///
/// let clock = stagger::testing::VirtualClock::new();
/// let mut lowest = ExponentialBackOff::options().random(|| 0.0).build()?;
/// let mut highest = ExponentialBackOff::options().random(|| 1.0).clock(clock.clone()).build()?;
/// let close = |length: Duration, printed: f64| (printed..=printed * 1.001).contains(&length.as_secs_f64());
/// for (request, interval, [low, high]) in documented {
///     assert!(close(lowest.current_interval(), interval), "request {request}");
///     assert!(close(lowest.next_backoff().unwrap(), low), "request {request}");
///     assert!(close(highest.next_backoff().unwrap(), high), "request {request}");
/// }
/// assert!(close(highest.current_interval(), 19.210));
/// clock.advance(Duration::from_secs(15 * 60));
/// assert_eq!(highest.next_backoff(), None);
/// # Ok::<(), stagger_cenkalti::OptionsError>(())
/// ```
pub struct ExponentialBackOff<C = SystemClock, R = Seeded> {
    parameters: Parameters,
    time: ElapsedTime<C>,
    random: R,
    current: u64,
}

impl ExponentialBackOff {
    /// Creates a backoff with the package's defaults: 500 ms, ±0.5, ×1.5, 60 s, 15 min.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(Self::options())
    }

    /// Returns options with the package's defaults.
    #[must_use]
    pub fn options() -> ExponentialBackOffOptions {
        ExponentialBackOffOptions::default()
    }
}

impl<C: Clock, R: Random> ExponentialBackOffOptions<C, R> {
    /// Builds the backoff, reset.
    ///
    /// # Errors
    /// Returns [`OptionsError`] with every invalid setting.
    pub fn build(self) -> Result<ExponentialBackOff<C, R>, OptionsError> {
        self.parameters.check()?;
        Ok(ExponentialBackOff::with_options(self))
    }
}

impl Default for ExponentialBackOff {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Clock, R> ExponentialBackOff<C, R> {
    fn with_options(ExponentialBackOffOptions { parameters, clock, random }: ExponentialBackOffOptions<C, R>) -> Self {
        Self { parameters, time: ElapsedTime::from_now_on(clock), random, current: parameters.initial_interval }
    }

    /// Returns the time since the backoff was last reset, or created.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.time.get()
    }

    /// Returns a handle to the elapsed time, which can be read while another owner uses the backoff.
    #[must_use]
    pub fn elapsed_time(&self) -> ElapsedTime<C>
    where
        C: Clone,
    {
        self.time.clone()
    }

    /// Returns the interval around which the next wait is drawn.
    #[must_use]
    pub const fn current_interval(&self) -> Duration {
        Duration::from_nanos(self.current)
    }

    /// Returns the first interval.
    #[must_use]
    pub const fn initial_interval(&self) -> Duration {
        Duration::from_nanos(self.parameters.initial_interval)
    }

    /// Returns the share of an interval by which a wait may be shorter or longer.
    #[must_use]
    pub const fn randomization_factor(&self) -> f64 {
        self.parameters.randomization_factor
    }

    /// Returns the multiplier from one interval to the next.
    #[must_use]
    pub const fn multiplier(&self) -> f64 {
        self.parameters.multiplier
    }

    /// Returns the longest interval.
    #[must_use]
    pub const fn max_interval(&self) -> Duration {
        Duration::from_nanos(self.parameters.max_interval)
    }

    /// Returns the elapsed time after which retries end, if there is a limit.
    #[must_use]
    pub const fn max_elapsed_time(&self) -> Option<Duration> {
        self.parameters.max_elapsed_time
    }
}

impl<C: Clock, R: Random> BackOff for ExponentialBackOff<C, R> {
    fn next_backoff(&mut self) -> Option<Duration> {
        let Parameters { randomization_factor, multiplier, max_interval, max_elapsed_time, .. } = self.parameters;
        // Without a limit the clock is not read.
        let elapsed = max_elapsed_time.map(|limit| (self.elapsed(), limit));
        let next = Duration::from_nanos(randomized(randomization_factor, self.random.next(), self.current));
        self.current = next_interval(self.current, multiplier, max_interval);
        match elapsed {
            Some((elapsed, limit)) if elapsed.saturating_add(next) > limit => None,
            _ => Some(next),
        }
    }

    fn reset(&mut self) {
        self.current = self.parameters.initial_interval;
        self.time.restart();
        self.random.reset();
    }
}

impl<C: fmt::Debug, R> fmt::Debug for ExponentialBackOff<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExponentialBackOff")
            .field("parameters", &self.parameters)
            .field("time", &self.time)
            .field("current", &self.current)
            .finish_non_exhaustive()
    }
}

/// The time since a backoff was last reset.
///
/// Clones share it, so one can be kept while a ticker on another task or thread owns the backoff.
#[derive(Clone, Debug)]
pub struct ElapsedTime<C = SystemClock> {
    start: Arc<AtomicU64>,
    clock: C,
}

impl<C: Clock> ElapsedTime<C> {
    pub(crate) fn from_now_on(clock: C) -> Self {
        let start = clock.now().as_nanos();
        Self { start: Arc::new(AtomicU64::new(start)), clock }
    }

    pub(crate) fn restart(&self) {
        self.start.store(self.clock.now().as_nanos(), Ordering::Relaxed);
    }

    /// Returns the elapsed time.
    #[must_use]
    pub fn get(&self) -> Duration {
        self.clock.now().saturating_since(Instant::from_nanos(self.start.load(Ordering::Relaxed)))
    }
}

/// Returns the wait drawn from an interval with `r` in `[0, 1)`.
///
/// The formula is `trunc(lo + r · (hi − lo + 1))`. The `+ 1` makes both ends as likely as the values in between if they
/// are whole numbers; with an `r` close to 1 the result can be 1 ns above `hi`. Without randomization it is the
/// interval itself.
pub(crate) fn randomized(factor: f64, r: f64, current: u64) -> u64 {
    // Only an exact zero is special: every other factor uses the formula.
    if factor <= 0.0 {
        return current;
    }
    // NaN is treated as the lower end.
    let r = if r >= 0.0 { r.min(1.0 - f64::EPSILON / 2.0) } else { 0.0 };
    let delta = factor * current as f64;
    let (lo, hi) = (current as f64 - delta, current as f64 + delta);
    truncate(lo + r * (hi - lo + 1.0))
}

/// Returns the interval after this one.
pub(crate) fn next_interval(current: u64, multiplier: f64, max: u64) -> u64 {
    // Compared by division: the product may exceed the longest duration.
    if current as f64 >= max as f64 / multiplier { max } else { truncate(current as f64 * multiplier) }
}

/// Truncates to whole nanoseconds, up to the longest duration that the crate computes with.
fn truncate(nanos: f64) -> u64 {
    nanos as i64 as u64
}
