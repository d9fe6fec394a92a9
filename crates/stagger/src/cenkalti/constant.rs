use core::time::Duration;

use super::BackOff;

/// The same wait before every retry, without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantBackOff {
    interval: Duration,
}

impl ConstantBackOff {
    /// This wait.
    #[must_use]
    pub const fn new(interval: Duration) -> Self {
        Self { interval }
    }

    /// The wait.
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

/// No wait at all before every retry, without end.
///
/// A server in trouble meets every client at full speed. Limit it, at least, with
/// [`with_max_retries`](super::with_max_retries).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZeroBackOff;

impl BackOff for ZeroBackOff {
    fn next_backoff(&mut self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn reset(&mut self) {}
}

/// No retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopBackOff;

impl BackOff for StopBackOff {
    fn next_backoff(&mut self) -> Option<Duration> {
        None
    }

    fn reset(&mut self) {}
}
