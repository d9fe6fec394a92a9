use core::fmt;
use core::time::Duration;

use super::interval::{grown, randomized};
use super::options::Numbers;
use super::{BackOff, ElapsedTime, ExponentialBackOffOptions, Random, Seeded};
use crate::{time::Clock, time::SystemClock};

/// The first interval, unless told otherwise.
pub const DEFAULT_INITIAL_INTERVAL: Duration = Duration::from_millis(500);
/// The share of an interval by which a wait may be shorter or longer, unless told otherwise.
pub const DEFAULT_RANDOMIZATION_FACTOR: f64 = 0.5;
/// What an interval is multiplied with for the next one, unless told otherwise.
pub const DEFAULT_MULTIPLIER: f64 = 1.5;
/// What intervals grow up to, unless told otherwise.
pub const DEFAULT_MAX_INTERVAL: Duration = Duration::from_secs(60);
/// When retries end, unless told otherwise.
pub const DEFAULT_MAX_ELAPSED_TIME: Duration = Duration::from_secs(15 * 60);

/// Intervals that grow by a factor, a wait drawn around each, and an end after a time.
///
/// What [`next_backoff`](BackOff::next_backoff) does, in this order:
///
/// 1. read the time that has elapsed since the last reset;
/// 2. draw the wait: `trunc(lo + r · (hi − lo + 1))`, with `r` of `[0, 1)`, `lo` and `hi` the interval minus and plus
///    the randomisation factor's share of it; exactly the interval, if that factor is 0;
/// 3. advance the interval: to the longest one if `interval >= max_interval / multiplier`, else to
///    `trunc(interval · multiplier)`;
/// 4. end if `elapsed + wait > max_elapsed_time`.
///
/// All in whole nanoseconds. The longest interval caps the interval, not the wait: with the defaults a wait may take
/// 90 s and, at the outermost draw, one nanosecond. The first interval is not capped.
///
/// The package's own example, with its defaults, in seconds, as its documentation prints them (cut off at each step, so
/// they are up to 0.1 % short); the tenth request finds the time used up:
///
/// ```
/// use std::time::Duration;
/// use stagger::cenkalti::{BackOff, ExponentialBackOff};
///
/// let documented = [
///     // request, interval, randomised interval
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
/// # Ok::<(), stagger::cenkalti::OptionsError>(())
/// ```
pub struct ExponentialBackOff<C = SystemClock, R = Seeded> {
    numbers: Numbers,
    time: ElapsedTime<C>,
    random: R,
    current: u64,
}

impl ExponentialBackOff {
    /// With the package's defaults: 500 ms, ±0.5, ×1.5, 60 s, 15 min.
    #[must_use]
    pub fn new() -> Self {
        let ExponentialBackOffOptions { numbers, .. } = Self::options();
        Self::from_parts(numbers, ElapsedTime::from_now_on(SystemClock), Seeded::default())
    }

    /// Those defaults, to be changed.
    #[must_use]
    pub fn options() -> ExponentialBackOffOptions {
        ExponentialBackOffOptions::default()
    }
}

impl Default for ExponentialBackOff {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Clock, R> ExponentialBackOff<C, R> {
    pub(super) const fn from_parts(numbers: Numbers, time: ElapsedTime<C>, random: R) -> Self {
        let current = numbers.initial_interval;
        Self { numbers, time, random, current }
    }

    /// The time since it was last reset, or made.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.time.get()
    }

    /// The same, to be read while somebody else has the backoff.
    #[must_use]
    pub fn elapsed_time(&self) -> ElapsedTime<C>
    where
        C: Clone,
    {
        self.time.clone()
    }

    /// The interval around which the next wait is drawn.
    #[must_use]
    pub const fn current_interval(&self) -> Duration {
        Duration::from_nanos(self.current)
    }

    /// The first interval.
    #[must_use]
    pub const fn initial_interval(&self) -> Duration {
        Duration::from_nanos(self.numbers.initial_interval)
    }

    /// The share of an interval by which a wait may be shorter or longer.
    #[must_use]
    pub const fn randomization_factor(&self) -> f64 {
        self.numbers.randomization_factor
    }

    /// What an interval is multiplied with for the next one.
    #[must_use]
    pub const fn multiplier(&self) -> f64 {
        self.numbers.multiplier
    }

    /// What intervals grow up to.
    #[must_use]
    pub const fn max_interval(&self) -> Duration {
        Duration::from_nanos(self.numbers.max_interval)
    }

    /// When retries end, if they do.
    #[must_use]
    pub const fn max_elapsed_time(&self) -> Option<Duration> {
        self.numbers.max_elapsed_time
    }
}

impl<C: Clock, R: Random> BackOff for ExponentialBackOff<C, R> {
    fn next_backoff(&mut self) -> Option<Duration> {
        let Numbers { randomization_factor, multiplier, max_interval, max_elapsed_time, .. } = self.numbers;
        // Without a limit nobody asks for the time.
        let elapsed = max_elapsed_time.map(|limit| (self.elapsed(), limit));
        let next = Duration::from_nanos(randomized(randomization_factor, self.random.next(), self.current));
        self.current = grown(self.current, multiplier, max_interval);
        match elapsed {
            Some((elapsed, limit)) if elapsed.saturating_add(next) > limit => None,
            _ => Some(next),
        }
    }

    fn reset(&mut self) {
        self.current = self.numbers.initial_interval;
        self.time.restart();
        self.random.reset();
    }
}

impl<C: fmt::Debug, R> fmt::Debug for ExponentialBackOff<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExponentialBackOff")
            .field("numbers", &self.numbers)
            .field("time", &self.time)
            .field("current", &self.current)
            .finish_non_exhaustive()
    }
}
