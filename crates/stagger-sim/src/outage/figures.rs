//! The results of an outage.

use core::time::Duration;

use super::course::{Course, Run};
use super::verdict::JudgedWindows;
use super::{LeaseFigures, Verdict};
use crate::engine::TimeSeries;

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
    /// Requests that succeeded, by their arrival; also those that arrived before the horizon and succeeded after it.
    pub served: TimeSeries,
    /// Number of requests that a breaker, a quiet period or a pacer rejected, at the first attempt or later.
    pub rejected: u64,
    /// Number of requests that waited for a quiet period or a pacer before their first attempt or later, each time
    /// counted.
    pub held: u64,
    /// Number of retries from the start of the outage.
    pub retries: u64,
    /// What became of a budget that the processes share by leases; `None` if there is none.
    pub leases: Option<LeaseFigures>,
    /// Requests that arrived from the start of the outage, and the attempts that they made before the horizon.
    pub(super) from_start: RequestsAndAttempts,
    pub(super) windows: JudgedWindows,
    pub(super) course: Course,
    /// Jobs at the server after the last arrival of every whole second.
    pub(super) queue: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RequestsAndAttempts {
    pub(super) requests: u64,
    pub(super) attempts: u64,
}

/// The last seconds, which the share of successes excludes, as the published figures of this model do.
const LATE: Duration = Duration::from_secs(20);

/// The period before the end for which the final ratios are computed.
const LAST: Duration = Duration::from_secs(10);

impl OutageFigures {
    /// Returns the number of attempts per request: of the requests that arrive from the start of the outage, before the
    /// horizon. At most the attempts of the policy, and at least 1, except for requests whose first attempt a breaker
    /// rejects or a spread delays beyond the horizon.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        self.from_start.attempts as f64 / (self.from_start.requests as f64).max(1.0)
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

    /// Returns whether the system survived the outage, as far as this run shows it:
    /// [`NotDecided`](Verdict::NotDecided) if a longer one could show something else.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let run = Run {
            course: &self.course,
            windows: &self.windows,
            fault_end: self.outage_end,
            horizon: self.horizon,
            requests: &self.requests,
            attempts: vec![&self.attempts],
            occupancies: vec![&self.queue],
        };
        run.verdict()
    }

    /// Returns what the windows up to the horizon say, as if nothing came after it. A system that recovers more slowly
    /// than that is down.
    #[must_use]
    pub fn state_at_horizon(&self) -> Verdict {
        self.windows.verdict()
    }

    /// Returns the time from the end of the outage until the system is up for the rest of the simulation: 0 if it never
    /// fell, `None` if it is down at the horizon. Its resolution is the [width of a window](Self::window).
    #[must_use]
    pub fn recovery(&self) -> Option<Duration> {
        self.windows.recovery()
    }

    /// Returns whether the system is down at the horizon, and stays down; false if that is [not
    /// decided](Verdict::NotDecided).
    #[must_use]
    pub fn is_metastable(&self) -> bool {
        self.verdict().is_down()
    }

    /// Returns the time at which the system fell first, from the start of the simulation; `None` if it never fell.
    #[must_use]
    pub fn fell_at(&self) -> Option<Duration> {
        self.windows.fell_at()
    }

    /// Returns whether the system was down when the outage started: random variation can overload a server, too. The
    /// [verdict](Self::verdict) does not include it.
    #[must_use]
    pub fn was_down_before_outage(&self) -> bool {
        self.windows.was_down_before()
    }

    /// Returns the width of the windows by which the system is judged: a second, or the time of a hundred expected
    /// requests if that is longer.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.windows.width()
    }

    /// Returns the shortest horizon at which the system can be seen to recover: the end of the outage and five windows.
    #[must_use]
    pub fn min_horizon(&self) -> Duration {
        self.windows.min_horizon()
    }

    /// Returns the share of the requests of the last ten windows that succeeded.
    #[must_use]
    pub fn final_success_ratio(&self) -> f64 {
        self.windows.final_success_ratio()
    }

    /// Returns the number of successes in the last ten seconds relative to the mean number of requests.
    #[must_use]
    pub fn final_goodput(&self) -> f64 {
        self.last(&self.successes)
    }

    /// Returns the number of attempts in the last ten seconds relative to the mean number of requests: the offered
    /// load, in multiples of that without retries. It can exceed the attempts of the policy, because they include
    /// retries of earlier requests, and because more requests than the mean may arrive at random.
    #[must_use]
    pub fn final_load(&self) -> f64 {
        self.last(&self.attempts)
    }

    fn last(&self, series: &TimeSeries) -> f64 {
        series.sum_within(self.horizon.saturating_sub(LAST), self.horizon) as f64 / (self.rate * LAST.as_secs_f64())
    }

    fn ratio(&self, of: &TimeSeries, to: &TimeSeries, from: Duration, until: Duration) -> f64 {
        of.sum_within(from, until) as f64 / (to.sum_within(from, until) as f64).max(1.0)
    }
}
