//! Backoffs, and those that need no arithmetic.

use core::time::Duration;

/// A sequence of waits before retries.
///
/// It belongs to one call: methods take `&mut self`, so two calls cannot share one by mistake. `&mut B` and `Box<B>`
/// are backoffs, too.
///
/// ```
/// use std::time::Duration;
/// use stagger_cenkalti::{self as backoff, BackOff};
///
/// /// 1 s, 2 s, 3 s, …
/// struct Linear(u32);
///
/// impl BackOff for Linear {
///     fn next_backoff(&mut self) -> Option<Duration> {
///         self.0 += 1;
///         Some(Duration::from_secs(1) * self.0)
///     }
///
///     fn reset(&mut self) {
///         self.0 = 0;
///     }
/// }
///
/// let mut b = backoff::with_max_retries(Linear(0), 2);
/// assert_eq!(b.next_backoff(), Some(Duration::from_secs(1)));
/// assert_eq!(b.next_backoff(), Some(Duration::from_secs(2)));
/// assert_eq!(b.next_backoff(), None);
/// ```
pub trait BackOff {
    /// Returns the wait before the next retry, or `None` if there is no further retry.
    fn next_backoff(&mut self) -> Option<Duration>;

    /// Resets the backoff to its initial state. Every call and every ticker starts by calling it.
    fn reset(&mut self);
}

impl<B: BackOff + ?Sized> BackOff for &mut B {
    fn next_backoff(&mut self) -> Option<Duration> {
        (**self).next_backoff()
    }

    fn reset(&mut self) {
        (**self).reset();
    }
}

impl<B: BackOff + ?Sized> BackOff for Box<B> {
    fn next_backoff(&mut self) -> Option<Duration> {
        (**self).next_backoff()
    }

    fn reset(&mut self) {
        (**self).reset();
    }
}

/// A backoff that always waits the same time, without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantBackOff {
    interval: Duration,
}

impl ConstantBackOff {
    /// Creates a backoff that always waits `interval`.
    #[must_use]
    pub const fn new(interval: Duration) -> Self {
        Self { interval }
    }

    /// Returns the wait.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.interval
    }
}

impl BackOff for ConstantBackOff {
    fn next_backoff(&mut self) -> Option<Duration> {
        Some(self.interval)
    }

    fn reset(&mut self) {}
}

/// A backoff without waits, without end.
///
/// A failing server is retried at full speed by every client. Limit it at least with
/// [`with_max_retries`](crate::with_max_retries).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZeroBackOff;

impl BackOff for ZeroBackOff {
    fn next_backoff(&mut self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn reset(&mut self) {}
}

/// A backoff that allows no retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopBackOff;

impl BackOff for StopBackOff {
    fn next_backoff(&mut self) -> Option<Duration> {
        None
    }

    fn reset(&mut self) {}
}

/// Limits a backoff to `max` retries, which means `max + 1` calls. With 0 there is one call and no retry.
///
/// When the retries are used up, the inner backoff is no longer called.
///
/// ```
/// use stagger_cenkalti::{self as backoff, ZeroBackOff, with_max_retries};
///
/// let mut calls = 0;
/// let operation = || {
///     calls += 1;
///     Err::<(), _>("refused")
/// };
/// assert_eq!(backoff::blocking::retry(operation, with_max_retries(ZeroBackOff, 10)).run(), Err("refused"));
/// assert_eq!(calls, 11);
/// ```
pub const fn with_max_retries<B: BackOff>(backoff: B, max: u64) -> MaxRetries<B> {
    MaxRetries { backoff, max, used: 0 }
}

/// A backoff with a limit on retries: see [`with_max_retries`].
#[derive(Clone, Debug)]
pub struct MaxRetries<B> {
    backoff: B,
    max: u64,
    used: u64,
}

impl<B> MaxRetries<B> {
    /// Returns the inner backoff.
    pub const fn backoff(&self) -> &B {
        &self.backoff
    }
}

impl<B: BackOff> BackOff for MaxRetries<B> {
    fn next_backoff(&mut self) -> Option<Duration> {
        if self.used >= self.max {
            return None;
        }
        self.used += 1;
        self.backoff.next_backoff()
    }

    fn reset(&mut self) {
        self.used = 0;
        self.backoff.reset();
    }
}
