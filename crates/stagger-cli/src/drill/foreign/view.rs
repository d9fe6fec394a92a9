use core::time::Duration;

use stagger_sim::reconnect::{ReconnectFigures, ReconnectRecorder, ReconnectScenario, ServerTrace};

use super::super::serve::Served;

/// What the server saw after its restart. Times are measured from the kill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::drill) struct ServerView {
    pub(super) arrivals: Vec<Duration>,
    pub(super) connects: Vec<Duration>,
}

impl ServerView {
    pub(super) fn of_server(served: &Served) -> Self {
        let times = |micros: &[u64]| micros.iter().copied().map(Duration::from_micros).collect();
        Self { arrivals: times(&served.arrived_at_us), connects: times(&served.connected_at_us) }
    }

    /// Returns what the server of a simulation saw that records all clients, up from `up_at` on. Attempts before that are
    /// refused by the kernel, and no server learns of them.
    pub(super) fn of_simulation(figures: &ReconnectFigures, up_at: Duration) -> Self {
        let arrivals = figures.sample.iter().flatten().copied().filter(|at| *at >= up_at).collect();
        let mut connects: Vec<Duration> = figures.sample_connects.iter().flatten().copied().collect();
        connects.sort_unstable();
        Self { arrivals, connects }
    }

    /// Returns the figures of this view.
    pub(in crate::drill) fn figures(&self, scenario: &ReconnectScenario, peak_backlog: u64) -> ServerFigures {
        let mut recorder = ReconnectRecorder::new(scenario);
        recorder.record_server(&ServerTrace { arrivals: &self.arrivals, connects: &self.connects });
        ServerFigures { figures: recorder.figures(peak_backlog), burst: self.burst() }
    }

    /// Returns the largest number of arrivals within [`BURST`].
    fn burst(&self) -> u64 {
        let mut times = self.arrivals.clone();
        times.sort_unstable();
        let (mut most, mut first) = (0, 0);
        for (at, time) in times.iter().enumerate() {
            while *time - times[first] >= BURST {
                first += 1;
            }
            most = most.max(at + 1 - first);
        }
        most as u64
    }
}

/// The figures of a server's view.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::drill) struct ServerFigures {
    pub(in crate::drill) figures: ReconnectFigures,
    /// Largest number of arrivals within any 100 ms. Unlike the peak in bins of 100 ms, it does not depend on where clients in step
    /// fall in a bin.
    pub(super) burst: u64,
}

/// Time in which a burst is counted.
const BURST: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_counted_in_any_100_ms_and_in_any_order() {
        let view = |millis: &[u64]| ServerView {
            arrivals: millis.iter().copied().map(Duration::from_millis).collect(),
            connects: Vec::new(),
        };
        assert_eq!(view(&[]).burst(), 0);
        assert_eq!(view(&[50, 180, 120, 149, 150]).burst(), 4, "from 50 to 149 there are three, and from 120 on four");
        assert_eq!(view(&[0, 100, 200]).burst(), 1);
    }
}
