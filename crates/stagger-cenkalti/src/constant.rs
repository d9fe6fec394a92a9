use core::time::Duration;

use crate::backoff::BackOff;

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
