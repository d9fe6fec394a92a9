//! The counters of a run, from which its figures follow.

use core::time::Duration;

use super::{ReconnectFigures, ReconnectScenario};
use crate::engine::{Histogram, InFlight, TimeSeries};

/// Counters of a running scenario. Times are in microseconds.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) arrivals: TimeSeries,
    pub(super) in_flight: InFlight,
    /// Total time that all clients waited. It fits: 2^26 clients wait for less than 2^38 µs each.
    pub(super) total_wait: u64,
    /// Number of clients whose next attempt, or the answer to it, would arrive after the horizon.
    pub(super) unfinished: u64,
    /// Whether clients are not told apart.
    pub(super) is_server_view: bool,
    connects: TimeSeries,
    connected_at: Histogram,
    recovery_times: Histogram,
    /// Number of attempts of each finished client.
    attempts: Histogram,
    gave_up: u64,
    pub(super) sample: Sample,
}

impl Tally {
    pub(super) fn connected(&mut self, at: u64, recovery_time: u64, attempts: u32) {
        self.in_flight.end(at);
        self.connects.add(at);
        self.connected_at.add(at);
        self.recovery_times.add(recovery_time);
        self.attempts.add(u64::from(attempts));
    }

    /// Records that a client was connected of which nothing else is known; its recovery time runs from the start.
    pub(super) fn connected_unknown(&mut self, at: u64) {
        self.connects.add(at);
        self.connected_at.add(at);
        self.recovery_times.add(at);
    }

    pub(super) fn gave_up(&mut self, attempts: u32) {
        self.gave_up += 1;
        self.attempts.add(u64::from(attempts));
    }

    /// Returns the number of clients without further events.
    pub(super) const fn finished(&self) -> u64 {
        self.attempts.count() + self.unfinished
    }

    pub(super) fn figures(self, scenario: &ReconnectScenario, peak_backlog: u64) -> ReconnectFigures {
        let clients = scenario.clients();
        let Self { connected_at, recovery_times, attempts, .. } = &self;
        let time = |micros: Option<u64>| micros.map(Duration::from_micros);
        let through = attempts.count();
        ReconnectFigures {
            clients,
            rate: scenario.rate(),
            attempts: self.arrivals.total(),
            connected: connected_at.count(),
            gave_up: self.gave_up,
            unfinished: self.unfinished,
            is_server_view: self.is_server_view,
            crashes: 0,
            held: 0,
            leases: None,
            peak_in_flight: self.in_flight.peak(),
            peak_backlog,
            t50: time(connected_at.quantile(0.5, clients)),
            t99: time(connected_at.quantile(0.99, clients)),
            t100: time(connected_at.quantile(1.0, clients)),
            recovered_mean: mean(recovery_times.sum(), recovery_times.count()),
            recovered_p50: time(recovery_times.quantile(0.5, clients)),
            recovered_p99: time(recovery_times.quantile(0.99, clients)),
            recovered_percentiles: recovery_times.percentiles(clients).map(Duration::from_micros).collect(),
            waited_mean: mean(u128::from(self.total_wait), clients),
            attempts_p50: attempts.quantile(0.5, through),
            attempts_p99: attempts.quantile(0.99, through),
            attempts_max: attempts.largest(),
            clients_by_attempts: attempts.small().to_vec(),
            sample_losses: self.sample.losses.into_lists(),
            sample: self.sample.arrivals.into_lists(),
            sample_connects: self.sample.connects.into_lists(),
            arrivals: self.arrivals,
            connects: self.connects,
        }
    }
}

/// Returns the mean of durations in microseconds.
fn mean(sum: u128, count: u64) -> Duration {
    Duration::from_nanos(u64::try_from(sum * 1_000 / u128::from(count.max(1))).unwrap_or(u64::MAX))
}

/// What the sampled clients did, each in the order of time. Times are in microseconds.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) losses: ClientTimes,
    pub(super) arrivals: ClientTimes,
    pub(super) connects: ClientTimes,
}

/// Times of each client, by its number.
#[derive(Debug, Default)]
pub(super) struct ClientTimes(Vec<Vec<Duration>>);

/// Maximum number of times of one kind that are recorded of a client.
const MAX_TIMES: usize = 10_000;

impl ClientTimes {
    #[cold]
    pub(super) fn record(&mut self, id: u32, at: u64) {
        let id = id as usize;
        if id >= self.0.len() {
            self.0.resize(id + 1, Vec::new());
        }
        let times = &mut self.0[id];
        if times.len() < MAX_TIMES {
            times.push(Duration::from_micros(at));
        }
    }

    fn into_lists(self) -> Vec<Vec<Duration>> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_client_are_bounded() {
        let mut times = ClientTimes::default();
        (0..).take(MAX_TIMES + 5).for_each(|at| times.record(1, at));
        let lists = times.into_lists();
        assert_eq!(lists[0], []);
        assert_eq!((lists[1].len(), lists[1].last()), (MAX_TIMES, Some(&Duration::from_micros(9_999))));
    }
}
