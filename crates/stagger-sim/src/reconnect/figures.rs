//! The results of a mass disconnect.

use core::time::Duration;

use crate::engine::TimeSeries;
use crate::outage::LeaseFigures;

/// The results of a mass disconnect with one policy and one seed. Times are measured from the start of the scenario.
///
/// Quantiles of times, and of attempts above 2,047, have a relative precision of 0.1 %; all other figures are exact.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ReconnectFigures {
    /// Number of clients.
    pub clients: u64,
    /// Number of handshakes per second that the server accepts.
    pub rate: f64,
    /// Number of attempts sent.
    pub attempts: u64,
    /// Number of clients connected at the end.
    pub connected: u64,
    /// Number of clients that gave up because their policy or a guard allows no further attempt.
    pub gave_up: u64,
    /// Number of clients that would have continued after the horizon; in a server's view, all that were not connected.
    pub unfinished: u64,
    /// Whether this is what a server saw
    /// ([`ReconnectRecorder::record_server`](super::ReconnectRecorder::record_server)). It does not tell clients apart,
    /// so that what belongs to single clients is `None`, zero or empty.
    pub is_server_view: bool,
    /// Number of times that the server crashed again ([`ReconnectScenarioBuilder::crash_loop`]).
    ///
    /// [`ReconnectScenarioBuilder::crash_loop`]: super::ReconnectScenarioBuilder::crash_loop
    pub crashes: u64,
    /// Number of attempts that a quiet period or a pacer let wait for their turn.
    pub held: u64,
    /// What became of a budget that the processes share by leases; `None` if there is none.
    pub leases: Option<LeaseFigures>,
    /// Attempts that arrived, per 100 ms.
    pub arrivals: TimeSeries,
    /// Clients that were connected, per 100 ms.
    pub connects: TimeSeries,
    /// Arrival times of the attempts of the sampled clients; trailing clients without attempts are omitted.
    pub sample: Vec<Vec<Duration>>,
    /// Times at which the sampled clients lost their connections: once, and again with each crash of the server that
    /// ended one.
    pub sample_losses: Vec<Vec<Duration>>,
    /// Times at which the sampled clients were connected again; empty for a client that never was.
    pub sample_connects: Vec<Vec<Duration>>,
    /// Maximum number of attempts in flight.
    pub peak_in_flight: u64,
    /// Maximum number of pending handshakes at the server.
    pub peak_backlog: u64,
    /// Time at which half of all clients were connected; `None` if never.
    pub t50: Option<Duration>,
    /// Time at which 99 % of all clients were connected; `None` if never.
    pub t99: Option<Duration>,
    /// Time at which the last client was connected, exactly; `None` if some never were.
    pub t100: Option<Duration>,
    /// Mean recovery time: from the loss of a connection until the client is connected again, over connected clients.
    pub recovered_mean: Duration,
    /// Median recovery time over all clients; `None` if fewer were connected.
    pub recovered_p50: Option<Duration>,
    /// 99th percentile of the recovery times of all clients; `None` if fewer were connected.
    pub recovered_p99: Option<Duration>,
    /// Percentiles 1 to 100 of the recovery times of all clients; ends early if not all clients were connected.
    pub recovered_percentiles: Vec<Duration>,
    /// Mean total time that a client waited between attempts.
    pub waited_mean: Duration,
    /// Median number of attempts of the clients that finished: connected or gave up.
    pub attempts_p50: Option<u64>,
    /// 99th percentile of the number of attempts of the clients that finished.
    pub attempts_p99: Option<u64>,
    /// Maximum number of attempts of a client.
    pub attempts_max: u64,
    /// Number of finished clients by their number of attempts, from 0 up to 2,047.
    pub clients_by_attempts: Vec<u64>,
}

/// How close a policy comes to the optimum, as ratios in 0..=1; no policy can exceed 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Efficiency {
    /// `clients / attempts`: the optimum is one attempt per client. `None` if some clients were never connected.
    pub attempts: Option<f64>,
    /// `(clients / rate) / t100`; `None` if some clients were never connected.
    pub time: Option<f64>,
    /// `(clients / (2 · rate)) / recovered_mean`; `None` if some clients were never connected.
    pub mean_time: Option<f64>,
}

/// How unequally clients are treated: ratios of the 99th percentile to the median, 1 if all clients are treated alike.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fairness {
    /// p99 / p50 of the recovery times; `None` if one of them does not exist or the median is 0.
    pub recovered: Option<f64>,
    /// p99 / p50 of the number of attempts; `None` if no client finished or the median is 0.
    pub attempts: Option<f64>,
}

/// Minimum number of handshakes in a window for the excess.
const EXCESS_WINDOW_HANDSHAKES: f64 = 10.0;

/// Maximum number of bins in a window: longer than any scenario.
const MAX_EXCESS_WINDOW: f64 = 1e7;

impl ReconnectFigures {
    /// Returns the mean number of attempts per client.
    #[must_use]
    pub fn attempts_per_client(&self) -> f64 {
        self.attempts as f64 / self.clients as f64
    }

    /// Returns the maximum number of arrivals within 100 ms.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.arrivals.peak(Duration::ZERO)
    }

    /// Returns the maximum number of arrivals within ten consecutive bins of 100 ms.
    #[must_use]
    pub fn peak_second(&self) -> u64 {
        self.arrivals.peak_over(10, Duration::ZERO)
    }

    /// Returns the total time, in multiples of 100 ms, during which more attempts arrived than the server accepts.
    #[must_use]
    pub fn overload(&self) -> Duration {
        let most = self.rate * TimeSeries::BIN_WIDTH.as_secs_f64();
        let bins = self.arrivals.counts().iter().filter(|&&count| f64::from(count) > most).count();
        TimeSeries::BIN_WIDTH.saturating_mul(u32::try_from(bins).unwrap_or(u32::MAX))
    }

    /// Returns the number of attempts beyond what the server accepts, per client: in each window of 100 ms, or of ten
    /// handshakes if they take longer, those above `rate` times the length of the window. Unlike
    /// [`overload`](Self::overload), it counts how many arrive too early and not for how long, so synchronized clients,
    /// whose overload is short and high, do not look better than others.
    #[must_use]
    pub fn excess_per_client(&self) -> f64 {
        let per_bin = self.rate * TimeSeries::BIN_WIDTH.as_secs_f64();
        // With fewer handshakes per window, every attempt would exceed the capacity of its own window.
        let bins = (EXCESS_WINDOW_HANDSHAKES / per_bin).ceil().clamp(1.0, MAX_EXCESS_WINDOW);
        let capacity = per_bin * bins;
        let excess = |window: &[u32]| (window.iter().map(|&count| f64::from(count)).sum::<f64>() - capacity).max(0.0);
        self.arrivals.counts().chunks(bins as usize).map(excess).sum::<f64>() / (self.clients as f64).max(1.0)
    }

    /// Returns how close the policy comes to the optimum.
    #[must_use]
    pub fn efficiency(&self) -> Efficiency {
        let Some(last) = self.t100 else {
            return Efficiency { attempts: None, time: None, mean_time: None };
        };
        let best = self.clients as f64 / self.rate;
        Efficiency {
            attempts: Some(self.clients as f64 / self.attempts as f64),
            time: Some((best / last.as_secs_f64()).min(1.0)),
            mean_time: Some((best / 2.0 / self.recovered_mean.as_secs_f64()).min(1.0)),
        }
    }

    /// Returns the number of attempts that did not connect a client.
    #[must_use]
    pub const fn wasted(&self) -> u64 {
        self.attempts.saturating_sub(self.connected)
    }

    /// Returns how unequally clients are treated.
    #[must_use]
    pub fn fairness(&self) -> Fairness {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let number = |count: Option<u64>| count.map(|count| count as f64);
        Fairness {
            recovered: over(seconds(self.recovered_p99), seconds(self.recovered_p50)),
            attempts: over(number(self.attempts_p99), number(self.attempts_p50)),
        }
    }
}

/// Returns the ratio of two numbers; `None` if one of them does not exist or the second is 0.
fn over(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    let (one, other) = (one?, other?);
    if other > 0.0 { Some(one / other) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_the_ratio_of_p99_to_the_median() {
        let seconds = Duration::from_secs;
        let mut figures =
            ReconnectFigures { attempts_p50: Some(2), attempts_p99: Some(7), ..ReconnectFigures::default() };
        (figures.recovered_p50, figures.recovered_p99) = (Some(seconds(4)), Some(seconds(10)));
        assert_eq!(figures.fairness(), Fairness { recovered: Some(2.5), attempts: Some(3.5) });
        figures.recovered_p99 = None;
        assert_eq!(figures.fairness().recovered, None, "more than 1 % were never connected");
        (figures.recovered_p50, figures.recovered_p99) = (Some(Duration::ZERO), Some(seconds(1)));
        assert_eq!(figures.fairness().recovered, None, "the median is 0");
    }

    fn arrivals(counts: &[u32]) -> TimeSeries {
        let mut series = TimeSeries::default();
        for (bin, &count) in (0..).zip(counts) {
            (0..count).for_each(|_| series.record(TimeSeries::BIN_WIDTH * bin));
        }
        series
    }

    /// A thousand attempts at a server that accepts ten in 100 ms: all at once, or spread over ten times their share.
    #[test]
    fn clients_in_step_exceed_the_capacity_by_more_although_for_a_shorter_time() {
        let figures = |counts: &[u32]| ReconnectFigures {
            clients: 1_000,
            rate: 100.0,
            arrivals: arrivals(counts),
            ..ReconnectFigures::default()
        };
        let (in_step, spread) = (figures(&[1_000]), figures(&[20; 50]));
        assert!(in_step.overload() < spread.overload(), "by time, clients in step look better");
        assert_eq!((in_step.excess_per_client() * 1e3).round() as u64, 990);
        assert_eq!((spread.excess_per_client() * 1e3).round() as u64, 500);
        assert_eq!((figures(&[10; 100]).excess_per_client() * 1e3).round() as u64, 0, "at the capacity");
    }

    #[test]
    fn a_slow_server_is_judged_by_windows_of_ten_handshakes() {
        // One attempt per second, as many as it accepts.
        let counts: Vec<u32> = (0..600).map(|bin| u32::from(bin % 10 == 0)).collect();
        let figures = ReconnectFigures { clients: 60, rate: 1.0, arrivals: arrivals(&counts), ..Default::default() };
        assert_eq!((figures.excess_per_client() * 1e3).round() as u64, 0);
        let none = ReconnectFigures { rate: 1e-9, clients: 3, arrivals: arrivals(&[3]), ..Default::default() };
        assert!(none.excess_per_client().is_finite());
    }

    #[test]
    fn attempts_that_connect_no_client_are_wasted() {
        let figures = ReconnectFigures { attempts: 12, connected: 5, ..ReconnectFigures::default() };
        assert_eq!(figures.wasted(), 7);
    }
}
