use core::time::Duration;

use crate::TimeSeries;

/// What came of a scenario with one policy and one seed. Times run from the beginning of the scenario.
///
/// Quantiles of times, and of attempts above 2,047, are good to a thousandth of themselves; everything else is exact.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ReconnectFigures {
    /// The clients there were.
    pub clients: u64,
    /// How many the server let in a second.
    pub rate: f64,
    /// Attempts that were sent.
    pub attempts: u64,
    /// Clients that are connected in the end.
    pub connected: u64,
    /// Clients that gave up, because their policy has no further attempt.
    pub gave_up: u64,
    /// Clients that would have gone on after the horizon.
    pub unfinished: u64,
    /// Attempts that arrived, in each tenth of a second.
    pub arrivals: TimeSeries,
    /// Clients that were connected, in each tenth of a second.
    pub connects: TimeSeries,
    /// When the attempts of some clients arrived, as many as the scenario asked for; those who never made one are left out
    /// at the end.
    pub sample: Vec<Vec<Duration>>,
    /// The most attempts of which no answer had come yet.
    pub peak_in_flight: u64,
    /// The most handshakes that were waiting or underway at the server.
    pub peak_backlog: u64,
    /// When half of all clients were connected; `None` if they never were.
    pub t50: Option<Duration>,
    /// When 99 % of all clients were connected; `None` if they never were.
    pub t99: Option<Duration>,
    /// When the last client was connected, exactly; `None` if some never were.
    pub t100: Option<Duration>,
    /// How long clients recovered from their own loss, of those that were connected: the mean.
    pub recovered_mean: Duration,
    /// How long clients recovered from their own loss, half of all clients.
    pub recovered_p50: Option<Duration>,
    /// How long clients recovered from their own loss, 99 % of all clients.
    pub recovered_p99: Option<Duration>,
    /// How long clients recovered from their own loss, for each hundredth of all clients; it ends where the others never came in.
    pub recovered_percentiles: Vec<Duration>,
    /// How long a client slept between its attempts, the mean of all clients.
    pub waited_mean: Duration,
    /// The attempts of a client, half of those that are through.
    pub attempts_p50: Option<u64>,
    /// The attempts of a client, 99 % of those that are through.
    pub attempts_p99: Option<u64>,
    /// The most attempts of one client.
    pub attempts_max: u64,
    /// How many clients made that many attempts, from 0 on, of those that are through; up to 2,047 attempts.
    pub clients_by_attempts: Vec<u64>,
}

/// How close to the best possible, each as a share in 0..=1: 1 is the limit that no policy can pass.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Efficiency {
    /// `clients / attempts`: the limit is one attempt for each; `None` if somebody never came in.
    pub attempts: Option<f64>,
    /// `(clients / rate) / t100`; `None` if somebody never came in.
    pub time: Option<f64>,
    /// `(clients / 2 · rate) / recovered_mean`; `None` if somebody never came in.
    pub mean_time: Option<f64>,
}

/// How unequally clients fare, each as the figure of the unluckiest hundredth over that of the one in the middle: 1 where all
/// fare alike.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fairness {
    /// Of the times that clients recovered: p99 / p50; `None` if one of them never came.
    pub recovered: Option<f64>,
    /// Of the attempts of a client: p99 / p50; `None` if nobody is through.
    pub attempts: Option<f64>,
}

impl ReconnectFigures {
    /// Attempts for each client, the mean.
    #[must_use]
    pub fn attempts_per_client(&self) -> f64 {
        self.attempts as f64 / self.clients as f64
    }

    /// The most arrivals in a tenth of a second.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.arrivals.peak(Duration::ZERO)
    }

    /// The most arrivals in a tenth of a second that does not begin before `from`: beyond the first wave, which is the same
    /// for all policies with one base.
    #[must_use]
    pub fn peak_from(&self, from: Duration) -> u64 {
        self.arrivals.peak(from)
    }

    /// The most arrivals in ten tenths of a second in a row.
    #[must_use]
    pub fn peak_second(&self) -> u64 {
        self.arrivals.peak_over(10, Duration::ZERO)
    }

    /// For how long, in tenths of a second, more arrived than the server can take.
    #[must_use]
    pub fn overload(&self) -> Duration {
        let most = self.rate * TimeSeries::BIN_WIDTH.as_secs_f64();
        let bins = self.arrivals.counts().iter().filter(|&&count| f64::from(count) > most).count();
        TimeSeries::BIN_WIDTH.saturating_mul(u32::try_from(bins).unwrap_or(u32::MAX))
    }

    /// How close it comes to the limits.
    #[must_use]
    pub fn efficiency(&self) -> Efficiency {
        let best = self.clients as f64 / self.rate;
        let everyone = self.t100.is_some();
        Efficiency {
            attempts: everyone.then(|| self.clients as f64 / self.attempts as f64),
            time: self.t100.map(|last| (best / last.as_secs_f64()).min(1.0)),
            mean_time: everyone.then(|| (best / 2.0 / self.recovered_mean.as_secs_f64()).min(1.0)),
        }
    }

    /// Attempts that connected nobody: work for the server, and nothing to show for it.
    #[must_use]
    pub const fn wasted(&self) -> u64 {
        self.attempts.saturating_sub(self.connected)
    }

    /// How unequally clients fare.
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

fn over(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.zip(other).filter(|&(_, other)| other > 0.0).map(|(one, other)| one / other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_how_far_the_unluckiest_hundredth_is_from_the_middle() {
        let seconds = Duration::from_secs;
        let mut figures =
            ReconnectFigures { attempts_p50: Some(2), attempts_p99: Some(7), ..ReconnectFigures::default() };
        (figures.recovered_p50, figures.recovered_p99) = (Some(seconds(4)), Some(seconds(10)));
        assert_eq!(figures.fairness(), Fairness { recovered: Some(2.5), attempts: Some(3.5) });
        figures.recovered_p99 = None;
        assert_eq!(figures.fairness().recovered, None, "a hundredth never came in");
        (figures.recovered_p50, figures.recovered_p99) = (Some(Duration::ZERO), Some(seconds(1)));
        assert_eq!(figures.fairness().recovered, None, "of nothing there is no multiple");
    }

    #[test]
    fn attempts_that_connect_nobody_are_wasted() {
        let figures = ReconnectFigures { attempts: 12, connected: 5, ..ReconnectFigures::default() };
        assert_eq!(figures.wasted(), 7);
    }
}
