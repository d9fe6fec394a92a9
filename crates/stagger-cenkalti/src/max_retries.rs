use core::time::Duration;

use crate::backoff::BackOff;

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
