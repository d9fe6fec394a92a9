use core::fmt;
use core::time::Duration;

use crate::numbers::instant::nanos;
use crate::numbers::random::draw_nanos;
use crate::outcome::FailureKind;
use crate::policy::Policy;

/// Delays of your own, in place of a policy's backoff and jitter. Everything else of the policy applies: its limits,
/// hints and spread, and the guards of the call.
///
/// Implemented for closures. Calls share a strategy, so it keeps no state of a call: what it may depend on is in the
/// [`RetryContext`]. A forecast or a simulation of the policy does not know it; where a policy can express the delays,
/// prefer the policy.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::machine::{RetryContext, Strategy};
///
/// /// Grows by the golden ratio, with full jitter below it.
/// let golden = |retry: &RetryContext| {
///     let ceiling = Duration::from_millis(100).mul_f64(1.618_f64.powi(retry.number.min(16) as i32 - 1));
///     Some(retry.uniform(Duration::ZERO, ceiling))
/// };
/// let first = RetryContext::new(1, 42);
/// assert!(golden.next_delay(&first).unwrap() <= Duration::from_millis(100));
/// ```
pub trait Strategy: Send + Sync {
    /// Returns the delay before this retry, or `None` if there is no further retry.
    fn next_delay(&self, retry: &RetryContext) -> Option<Duration>;
}

impl<F> Strategy for F
where
    F: Fn(&RetryContext) -> Option<Duration> + Send + Sync,
{
    fn next_delay(&self, retry: &RetryContext) -> Option<Duration> {
        self(retry)
    }
}

impl fmt::Debug for dyn Strategy + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Strategy")
    }
}

/// The retry whose delay a [`Strategy`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryContext {
    /// Number of the retry in the schedule, from 1.
    pub number: u32,
    /// The delay that the strategy returned for the retry before it; zero before the first.
    pub previous: Duration,
    /// The kind of the failure.
    pub kind: FailureKind,
    /// Uniform random bits, different for each call and each retry. The same call of a simulation or a test gets the
    /// same bits.
    pub random: u64,
}

impl RetryContext {
    /// Creates the context of a retry after a transient failure, without an earlier delay: for tests of a strategy.
    #[must_use]
    pub const fn new(number: u32, random: u64) -> Self {
        Self { number, previous: Duration::ZERO, kind: FailureKind::Transient, random }
    }

    /// Returns a length that is uniform on `[from, to]`, drawn from the random bits; `from` if `to` is below it.
    #[must_use]
    pub fn uniform(&self, from: Duration, to: Duration) -> Duration {
        let from = nanos(from);
        Duration::from_nanos(draw_nanos(from, nanos(to).max(from), self.random))
    }
}

/// A policy, and optionally the strategy that computes its delays.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RetryPlan<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The strategy, if there is one.
    pub strategy: Option<&'a dyn Strategy>,
}

impl<'a> From<&'a Policy> for RetryPlan<'a> {
    fn from(policy: &'a Policy) -> Self {
        Self { policy, strategy: None }
    }
}

impl<'a> RetryPlan<'a> {
    /// Sets the strategy.
    #[must_use]
    pub const fn strategy(mut self, strategy: Option<&'a dyn Strategy>) -> Self {
        self.strategy = strategy;
        self
    }
}
