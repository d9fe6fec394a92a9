use core::time::Duration;

use crate::TimeSeries;

/// What came of a scenario with one policy, one kind of guards and one seed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OutageFigures {
    /// How many requests come in a second.
    pub rate: f64,
    /// When the outage began.
    pub outage_start: Duration,
    /// When it was over.
    pub outage_end: Duration,
    /// When the simulation ended.
    pub horizon: Duration,
    /// Requests that came.
    pub requests: TimeSeries,
    /// Attempts that were sent.
    pub attempts: TimeSeries,
    /// Requests that succeeded, by the time at which they did.
    pub successes: TimeSeries,
    /// Requests that succeeded, by the time at which they came.
    pub served: TimeSeries,
    /// Requests that a breaker refused, at the first attempt or later.
    pub rejected: u64,
}

const SECOND: Duration = Duration::from_secs(1);

/// It has recovered when this share of the requests succeeds for so many seconds in a row.
const HEALTHY: f64 = 0.9;
const HEALTHY_FOR: usize = 5;

/// Requests that came in the last seconds cannot all have been served before the end.
const LATE: Duration = Duration::from_secs(20);

/// The end, over which the last ratios are taken.
const LAST: Duration = Duration::from_secs(10);

impl OutageFigures {
    /// Attempts for each request, from the beginning of the outage on; 1 is the limit.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        self.ratio(&self.attempts, &self.requests, self.outage_start, self.horizon)
    }

    /// The share of the requests that succeeded, from the beginning of the outage on, without those of the last 20 s.
    #[must_use]
    pub fn success_ratio(&self) -> f64 {
        self.ratio(&self.served, &self.requests, self.outage_start, self.horizon.saturating_sub(LATE))
    }

    /// The most attempts in one second, from the beginning of the outage on. Seconds begin at whole ones.
    #[must_use]
    pub fn peak_second(&self) -> u64 {
        self.attempts.seconds().skip(self.outage_start.as_secs() as usize).max().unwrap_or(0)
    }

    /// How long after the outage it was over: when the first five seconds begin in each of which at least 90 % as many
    /// requests succeeded as come on average. `None`: it never was.
    #[must_use]
    pub fn recovery(&self) -> Option<Duration> {
        let ended = self.outage_end.as_secs_f64().ceil() as usize;
        let seconds: Vec<_> = self.successes.seconds().take(self.horizon.as_secs() as usize).collect();
        let healthy = |second: &u64| *second as f64 >= HEALTHY * self.rate;
        let first = seconds.get(ended..)?.windows(HEALTHY_FOR).position(|seconds| seconds.iter().all(healthy))?;
        Some((SECOND * (ended + first) as u32).saturating_sub(self.outage_end))
    }

    /// The outage is over, and it does not come back by itself. "Never" is within the horizon: what heals slowly enough
    /// counts, too.
    #[must_use]
    pub fn is_metastable(&self) -> bool {
        self.recovery().is_none()
    }

    /// Requests that succeeded in the last ten seconds, as a share of those that come on average.
    #[must_use]
    pub fn final_goodput(&self) -> f64 {
        self.last(&self.successes)
    }

    /// Attempts in the last ten seconds, for each request that comes on average.
    #[must_use]
    pub fn final_attempts_per_request(&self) -> f64 {
        self.last(&self.attempts)
    }

    fn last(&self, series: &TimeSeries) -> f64 {
        series.sum_within(self.horizon.saturating_sub(LAST), self.horizon) as f64 / (self.rate * LAST.as_secs_f64())
    }

    fn ratio(&self, of: &TimeSeries, to: &TimeSeries, from: Duration, until: Duration) -> f64 {
        of.sum_within(from, until) as f64 / (to.sum_within(from, until) as f64).max(1.0)
    }
}
