use core::fmt;
use core::time::Duration;

use super::{ElapsedTime, ExponentialBackOff, Random, Seeded};
use crate::{Instant, Seed, time::Clock, time::SystemClock};

/// The settings of an [`ExponentialBackOff`], checked when it is [built](Self::build).
#[derive(Clone, Debug)]
pub struct ExponentialBackOffOptions<C = SystemClock, R = Seeded> {
    pub(super) numbers: Numbers,
    clock: C,
    random: R,
}

/// What an exponential backoff computes with; lengths that take part in the arithmetic are whole nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Numbers {
    pub(super) initial_interval: u64,
    pub(super) randomization_factor: f64,
    pub(super) multiplier: f64,
    pub(super) max_interval: u64,
    pub(super) max_elapsed_time: Option<Duration>,
}

impl Default for ExponentialBackOffOptions {
    fn default() -> Self {
        let numbers = Numbers {
            initial_interval: nanos(super::DEFAULT_INITIAL_INTERVAL),
            randomization_factor: super::DEFAULT_RANDOMIZATION_FACTOR,
            multiplier: super::DEFAULT_MULTIPLIER,
            max_interval: nanos(super::DEFAULT_MAX_INTERVAL),
            max_elapsed_time: Some(super::DEFAULT_MAX_ELAPSED_TIME),
        };
        Self { numbers, clock: SystemClock, random: Seeded::default() }
    }
}

impl<C, R> ExponentialBackOffOptions<C, R> {
    /// The first interval. Default 500 ms. It is not capped by the longest one.
    #[must_use]
    pub fn initial_interval(mut self, interval: Duration) -> Self {
        self.numbers.initial_interval = nanos(interval);
        self
    }

    /// Each wait is drawn from the interval plus and minus this share of it. Default 0.5, range `0..=1`; 0 is exactly
    /// the interval.
    #[must_use]
    pub const fn randomization_factor(mut self, share: f64) -> Self {
        self.numbers.randomization_factor = share;
        self
    }

    /// What each interval is multiplied with for the next one. Default 1.5; finite, at least 1.
    #[must_use]
    pub const fn multiplier(mut self, multiplier: f64) -> Self {
        self.numbers.multiplier = multiplier;
        self
    }

    /// Intervals, the first excepted, grow up to this. Default 60 s. What is drawn around one may be longer, by the
    /// randomisation factor.
    #[must_use]
    pub fn max_interval(mut self, interval: Duration) -> Self {
        self.numbers.max_interval = nanos(interval);
        self
    }

    /// The retries end when the elapsed time and the coming wait together are more than this. Default 15 min; `None`:
    /// they never end.
    #[must_use]
    pub fn max_elapsed_time(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.numbers.max_elapsed_time = limit.into();
        self
    }

    /// Measures the elapsed time on this clock. A virtual timer is its own clock: hand it to both.
    pub fn clock<C2: Clock>(self, clock: C2) -> ExponentialBackOffOptions<C2, R> {
        ExponentialBackOffOptions { numbers: self.numbers, clock, random: self.random }
    }

    /// Draws with these random numbers.
    pub fn random<R2: Random>(self, random: R2) -> ExponentialBackOffOptions<C, R2> {
        ExponentialBackOffOptions { numbers: self.numbers, clock: self.clock, random }
    }

    /// Draws from this seed: the same waits after every reset.
    pub fn seed(self, seed: Seed) -> ExponentialBackOffOptions<C, Seeded> {
        self.random(Seeded::with(seed))
    }

    /// The backoff, reset.
    ///
    /// # Errors
    /// [`OptionsError`] names every setting that makes no sense.
    pub fn build(self) -> Result<ExponentialBackOff<C, R>, OptionsError>
    where
        C: Clock,
        R: Random,
    {
        let Numbers { randomization_factor, multiplier, .. } = self.numbers;
        let error = OptionsError {
            randomization_factor: Some(randomization_factor).filter(|share| !(0.0..=1.0).contains(share)),
            multiplier: Some(multiplier).filter(|multiplier| !(1.0..f64::INFINITY).contains(multiplier)),
        };
        if error.randomization_factor.is_some() || error.multiplier.is_some() {
            return Err(error);
        }
        Ok(ExponentialBackOff::from_parts(self.numbers, ElapsedTime::from_now_on(self.clock), self.random))
    }
}

/// Settings that make no sense: every one of them, with the way out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionsError {
    randomization_factor: Option<f64>,
    multiplier: Option<f64>,
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(share) = self.randomization_factor {
            write!(f, "randomization factor {share} is outside 0..=1, so waits could be negative; use a share")?;
        }
        if self.randomization_factor.is_some() && self.multiplier.is_some() {
            f.write_str("; ")?;
        }
        if let Some(multiplier) = self.multiplier {
            write!(f, "multiplier {multiplier} lets intervals shrink or fail; use a finite number from 1 up")?;
        }
        Ok(())
    }
}

impl core::error::Error for OptionsError {}

/// In nanoseconds, at most the longest length that the crate computes with.
fn nanos(length: Duration) -> u64 {
    Instant::ZERO.saturating_add(length).as_nanos()
}
