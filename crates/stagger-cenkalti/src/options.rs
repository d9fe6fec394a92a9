//! The settings of an exponential backoff, and its source of random numbers.

use core::fmt;
use core::time::Duration;

use stagger::time::{Clock, SystemClock};
use stagger::{Instant, Seed};

/// Default of the first interval.
pub const DEFAULT_INITIAL_INTERVAL: Duration = Duration::from_millis(500);
/// Default of the randomization factor: the share of an interval by which a wait may be shorter or longer.
pub const DEFAULT_RANDOMIZATION_FACTOR: f64 = 0.5;
/// Default of the multiplier from one interval to the next.
pub const DEFAULT_MULTIPLIER: f64 = 1.5;
/// Default of the longest interval.
pub const DEFAULT_MAX_INTERVAL: Duration = Duration::from_secs(60);
/// Default of the elapsed time after which retries end.
pub const DEFAULT_MAX_ELAPSED_TIME: Duration = Duration::from_secs(15 * 60);

/// The settings of an [`ExponentialBackOff`](crate::ExponentialBackOff), validated by [`build`](Self::build).
#[derive(Clone, Debug)]
pub struct ExponentialBackOffOptions<C = SystemClock, R = Seeded> {
    pub(crate) parameters: Parameters,
    pub(crate) clock: C,
    pub(crate) random: R,
}

/// The parameters of an exponential backoff; durations used in arithmetic are whole nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parameters {
    pub(crate) initial_interval: u64,
    pub(crate) randomization_factor: f64,
    pub(crate) multiplier: f64,
    pub(crate) max_interval: u64,
    pub(crate) max_elapsed_time: Option<Duration>,
}

impl Parameters {
    /// Checks the settings that not every value is valid for.
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        let mut error = OptionsError { randomization_factor: None, multiplier: None };
        // Written so that NaN is out of range, too.
        if !(0.0..=1.0).contains(&self.randomization_factor) {
            error.randomization_factor = Some(self.randomization_factor);
        }
        if !(1.0..f64::INFINITY).contains(&self.multiplier) {
            error.multiplier = Some(self.multiplier);
        }
        if error.randomization_factor.is_none() && error.multiplier.is_none() { Ok(()) } else { Err(error) }
    }
}

impl Default for ExponentialBackOffOptions {
    fn default() -> Self {
        let parameters = Parameters {
            initial_interval: nanos(DEFAULT_INITIAL_INTERVAL),
            randomization_factor: DEFAULT_RANDOMIZATION_FACTOR,
            multiplier: DEFAULT_MULTIPLIER,
            max_interval: nanos(DEFAULT_MAX_INTERVAL),
            max_elapsed_time: Some(DEFAULT_MAX_ELAPSED_TIME),
        };
        Self { parameters, clock: SystemClock, random: Seeded::default() }
    }
}

impl<C, R> ExponentialBackOffOptions<C, R> {
    /// Sets the first interval, which is not capped by the longest one. Default: 500 ms.
    #[must_use]
    pub fn initial_interval(mut self, interval: Duration) -> Self {
        self.parameters.initial_interval = nanos(interval);
        self
    }

    /// Sets the randomization factor: each wait is drawn from the interval plus and minus this share of it. Default:
    /// 0.5. Range: `0..=1`; 0 means exactly the interval.
    #[must_use]
    pub const fn randomization_factor(mut self, share: f64) -> Self {
        self.parameters.randomization_factor = share;
        self
    }

    /// Sets the multiplier from one interval to the next. Default: 1.5. Must be finite and at least 1.
    #[must_use]
    pub const fn multiplier(mut self, multiplier: f64) -> Self {
        self.parameters.multiplier = multiplier;
        self
    }

    /// Sets the longest interval that later intervals grow to. Default: 60 s. It caps neither the first interval nor
    /// the waits, which may exceed it by the randomization factor.
    #[must_use]
    pub fn max_interval(mut self, interval: Duration) -> Self {
        self.parameters.max_interval = nanos(interval);
        self
    }

    /// Sets the elapsed time, including the coming wait, beyond which retries end. Default: 15 min. `None` means no
    /// limit.
    #[must_use]
    pub fn max_elapsed_time(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.parameters.max_elapsed_time = limit.into();
        self
    }

    /// Sets the clock that measures the elapsed time. A virtual timer is its own clock: pass it as both.
    pub fn clock<C2: Clock>(self, clock: C2) -> ExponentialBackOffOptions<C2, R> {
        ExponentialBackOffOptions { parameters: self.parameters, clock, random: self.random }
    }

    /// Sets the source of random numbers.
    pub fn random<R2: Random>(self, random: R2) -> ExponentialBackOffOptions<C, R2> {
        ExponentialBackOffOptions { parameters: self.parameters, clock: self.clock, random }
    }

    /// Sets the seed that waits are drawn from; the same waits follow every reset.
    pub fn seed(self, seed: Seed) -> ExponentialBackOffOptions<C, Seeded> {
        self.random(Seeded::with_seed(seed))
    }
}

/// The invalid settings of a backoff, each with a way to fix it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionsError {
    randomization_factor: Option<f64>,
    multiplier: Option<f64>,
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(share) = self.randomization_factor {
            write!(f, "randomization factor {share} could make waits negative; use a share from 0 to 1")?;
        }
        if self.randomization_factor.is_some() && self.multiplier.is_some() {
            f.write_str("; ")?;
        }
        if let Some(multiplier) = self.multiplier {
            write!(f, "multiplier {multiplier} is not a finite number of at least 1; use one, such as 1.5")?;
        }
        Ok(())
    }
}

impl core::error::Error for OptionsError {}

/// Returns a duration in nanoseconds, up to the longest that the crate computes with.
fn nanos(length: Duration) -> u64 {
    Instant::ZERO.saturating_add(length).as_nanos()
}

/// A source of random numbers; any `FnMut() -> f64` is one.
pub trait Random {
    /// Returns the next number, uniform on `[0, 1)`. A value outside is clamped to the nearer end.
    fn next(&mut self) -> f64;

    /// Resets the source, together with its backoff.
    fn reset(&mut self) {}
}

impl<F: FnMut() -> f64> Random for F {
    fn next(&mut self) -> f64 {
        self()
    }
}

/// The crate's own random numbers: a seed per call, from the system's entropy unless one was set.
///
/// The seed is drawn at the first wait after each reset. With a fixed seed, the same waits follow every reset; use it
/// for tests and reports only, because calls that share a seed wait in lockstep.
#[derive(Debug, Default)]
pub struct Seeded {
    fixed: Option<Seed>,
    seed: Option<Seed>,
    drawn: u64,
}

impl Seeded {
    pub(crate) const fn with_seed(seed: Seed) -> Self {
        Self { fixed: Some(seed), seed: None, drawn: 0 }
    }
}

/// A clone starts anew, so that it never repeats the draws of the original, unless its seed is fixed.
impl Clone for Seeded {
    fn clone(&self) -> Self {
        Self { fixed: self.fixed, seed: None, drawn: 0 }
    }
}

impl Random for Seeded {
    fn next(&mut self) -> f64 {
        let fixed = self.fixed;
        let seed = self.seed.get_or_insert_with(|| fixed.unwrap_or_else(stagger::seed));
        let bits = seed.for_call(self.drawn).get();
        self.drawn = self.drawn.wrapping_add(1);
        // The 53 bits that an `f64` represents exactly.
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn reset(&mut self) {
        self.seed = None;
        self.drawn = 0;
    }
}
