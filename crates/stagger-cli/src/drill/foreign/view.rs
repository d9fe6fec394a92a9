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
    pub(in crate::drill) fn figures(&self, scenario: &ReconnectScenario, peak_backlog: u64) -> ReconnectFigures {
        let mut recorder = ReconnectRecorder::new(scenario);
        recorder.record_server(&ServerTrace { arrivals: &self.arrivals, connects: &self.connects });
        recorder.figures(peak_backlog)
    }
}
