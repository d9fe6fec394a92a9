use core::time::Duration;

use crate::recording::time_series::TimeSeries;

/// The results of an outage with one policy, one kind of guards and one seed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OutageFigures {
    /// Mean number of requests per second.
    pub rate: f64,
    /// Start of the outage.
    pub outage_start: Duration,
    /// End of the outage.
    pub outage_end: Duration,
    /// End of the simulation.
    pub horizon: Duration,
    /// Requests, by their arrival.
    pub requests: TimeSeries,
    /// Attempts sent.
    pub attempts: TimeSeries,
    /// Requests that succeeded, by the time of the success.
    pub successes: TimeSeries,
    /// Requests that succeeded, by their arrival.
    pub served: TimeSeries,
    /// Number of requests that a breaker rejected, at the first attempt or later.
    pub rejected: u64,
}

/// The server has recovered when this share of the requests succeeds for this number of consecutive seconds.
const HEALTHY: f64 = 0.9;
const HEALTHY_FOR: usize = 5;

/// Requests that arrive in the last seconds may not have been served before the end.
const LATE: Duration = Duration::from_secs(20);

/// The period before the end for which the final ratios are computed.
const LAST: Duration = Duration::from_secs(10);

impl OutageFigures {
    /// Returns the number of attempts per request, from the start of the outage: at least 1, unless a breaker
    /// rejects first attempts.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        self.ratio(&self.attempts, &self.requests, self.outage_start, self.horizon)
    }

    /// Returns the share of requests that succeeded, from the start of the outage, excluding requests of the last 20 s.
    #[must_use]
    pub fn success_ratio(&self) -> f64 {
        self.ratio(&self.served, &self.requests, self.outage_start, self.horizon.saturating_sub(LATE))
    }

    /// Returns the maximum number of attempts within a whole second, from the start of the outage.
    #[must_use]
    pub fn peak_second(&self) -> u64 {
        self.attempts.seconds().skip(self.outage_start.as_secs() as usize).max().unwrap_or(0)
    }

    /// Returns the time from the end of the outage to recovery: to the start of the first five consecutive seconds in
    /// each of which the number of successes is at least 90 % of the mean number of requests. `None` if it never
    /// recovered.
    #[must_use]
    pub fn recovery(&self) -> Option<Duration> {
        let ended = self.outage_end.as_secs_f64().ceil() as usize;
        let seconds: Vec<_> = self.successes.seconds().take(self.horizon.as_secs() as usize).collect();
        let healthy = |second: &u64| *second as f64 >= HEALTHY * self.rate;
        let first = seconds.get(ended..)?.windows(HEALTHY_FOR).position(|seconds| seconds.iter().all(healthy))?;
        Some(Duration::from_secs((ended + first) as u64).saturating_sub(self.outage_end))
    }

    /// Returns whether the system did not recover after the outage, within the horizon. A very slow recovery counts as
    /// metastable, too.
    #[must_use]
    pub fn is_metastable(&self) -> bool {
        self.recovery().is_none()
    }

    /// Returns the number of successes in the last ten seconds relative to the mean number of requests.
    #[must_use]
    pub fn final_goodput(&self) -> f64 {
        self.last(&self.successes)
    }

    /// Returns the number of attempts in the last ten seconds relative to the mean number of requests.
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
