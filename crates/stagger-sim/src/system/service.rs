//! A service: workers with one queue.

use core::time::Duration;
use std::sync::Arc;

/// A service: workers with one queue.
///
/// An attempt that finds [`backlog`](Self::backlog) attempts at the service is refused at once. A worker takes the
/// oldest attempt and works for the service time. Then the service makes its calls, over its edges one after the other,
/// and answers when they are done. Own work comes first.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Service {
    pub(super) name: String,
    pub(super) workers: u32,
    pub(super) time: Duration,
    pub(super) times: Times,
    pub(super) backlog: u32,
    pub(super) stale: StaleWork,
    pub(super) occupancy: Occupancy,
    pub(super) instances: u32,
}

/// How service times are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServiceTimes {
    /// All are alike. The default.
    #[default]
    Fixed,
    /// Exponentially distributed.
    Exponential,
}

/// How service times are distributed around their mean.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Times {
    Fixed,
    Exponential,
    /// By a gamma distribution with this coefficient of variation.
    Gamma(f64),
    /// Quantiles at equal distances from the least time to the longest, and straight lines between them.
    Measured(Arc<[Duration]>),
}

impl Times {
    /// Returns the variance of a service time over the square of its mean.
    pub(super) fn squared_variation(&self) -> f64 {
        match self {
            Self::Fixed => 0.0,
            Self::Exponential => 1.0,
            Self::Gamma(variation) => variation * variation,
            Self::Measured(quantiles) => {
                let mean = mean_of(quantiles);
                let squares = steps(quantiles).map(|[low, high]| (low * low + low * high + high * high) / 3.0);
                let square = squares.sum::<f64>() / (quantiles.len().max(2) - 1) as f64;
                (square / (mean * mean) - 1.0).max(0.0)
            }
        }
    }
}

/// Returns the neighboring quantiles, in seconds.
fn steps(quantiles: &[Duration]) -> impl Iterator<Item = [f64; 2]> + '_ {
    quantiles.windows(2).map(|pair| [pair[0], pair[1]].map(|time| time.as_secs_f64()))
}

/// Returns the mean of measured times, in seconds.
fn mean_of(quantiles: &[Duration]) -> f64 {
    let sum: f64 = steps(quantiles).map(|[low, high]| f64::midpoint(low, high)).sum();
    sum / (quantiles.len().max(2) - 1) as f64
}

/// What a service does with work whose caller has given up.
///
/// For all but [`Done`](Self::Done), the deadline of an attempt is the earlier of its own time limit and, if the edge
/// hands it on, the deadline of the attempt that it is made for. Service that has begun is finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StaleWork {
    /// Works it off, with its calls and their retries. The default.
    #[default]
    Done,
    /// Drops an attempt whose deadline has come when a worker would take it, at no cost and without an answer. An
    /// attempt whose deadline has come makes no call and no retry, also if it came during the attempt's own work.
    DropExpired,
    /// Like `DropExpired`, and drops an attempt that cannot be back in time: now + mean service time + one-way delay is
    /// after its deadline.
    DropHopeless,
}

/// Whether a worker is held while its attempt waits for calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Occupancy {
    #[default]
    OwnWork,
    UntilAnswered,
}

impl Service {
    /// The longest queue of a service.
    pub const MAX_BACKLOG: u32 = 1 << 24;

    /// Creates a service with one worker, a fixed service time of 1 ms, a backlog of 1,000, and 10 instances.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            workers: 1,
            time: Duration::from_millis(1),
            times: Times::Fixed,
            backlog: 1_000,
            stale: StaleWork::Done,
            occupancy: Occupancy::OwnWork,
            instances: 10,
        }
    }

    /// Sets the number of workers. Range: 1 to 1,000,000.
    pub const fn workers(mut self, workers: u32) -> Self {
        self.workers = workers;
        self
    }

    /// Sets the mean service time. Range: 1 ns to an hour.
    pub const fn service_time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets how service times are distributed. Default: [`ServiceTimes::Fixed`].
    pub fn service_times(mut self, times: ServiceTimes) -> Self {
        self.times = match times {
            ServiceTimes::Fixed => Times::Fixed,
            ServiceTimes::Exponential => Times::Exponential,
        };
        self
    }

    /// Lets service times vary by a gamma distribution: its standard deviation is this multiple of the mean. 0 is
    /// fixed, 1 exponential. Range: 0 to 10.
    pub fn service_cv(mut self, variation: f64) -> Self {
        self.times = Times::Gamma(variation);
        self
    }

    /// Sets service times as they were measured: quantiles at equal distances, such as the least, the median and the
    /// longest. Between two of them, all times are equally likely. The mean follows from them. Range: 2 to 1,001
    /// quantiles that do not decrease.
    pub fn measured_times(mut self, quantiles: impl IntoIterator<Item = Duration>) -> Self {
        let quantiles: Arc<[Duration]> = quantiles.into_iter().collect();
        self.time = Duration::try_from_secs_f64(mean_of(&quantiles)).unwrap_or(Duration::MAX);
        self.times = Times::Measured(quantiles);
        self
    }

    /// Sets the maximum number of attempts at the service, waiting or in service. Range: 1 to
    /// [`MAX_BACKLOG`](Self::MAX_BACKLOG), the value for a queue without a bound.
    pub const fn backlog(mut self, backlog: u32) -> Self {
        self.backlog = backlog;
        self
    }

    /// Sets what is done with work whose caller has given up. Default: [`StaleWork::Done`].
    pub const fn stale_work(mut self, stale: StaleWork) -> Self {
        self.stale = stale;
        self
    }

    /// Holds the worker until the attempt is answered; the attempt then counts towards the backlog until then, too.
    /// Default: a worker is free after its own work.
    pub const fn hold_workers(mut self) -> Self {
        self.occupancy = Occupancy::UntilAnswered;
        self
    }

    /// Sets the number of instances: processes with their own guards for the calls of the service. An attempt belongs
    /// to one of them, chosen uniformly on arrival. The queue and the workers are shared. Range: 1 to 1,000,000.
    pub const fn instances(mut self, instances: u32) -> Self {
        self.instances = instances;
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of attempts that all workers together serve in a second, if none is held for calls.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        f64::from(self.workers) / self.time.as_secs_f64()
    }
}
