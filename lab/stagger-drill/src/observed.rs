//! A finished run, and the figures of what was observed in it: by the clients, or by the server if the clients record
//! nothing.

use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_sim::reconnect::{self, ReconnectFigures, ReconnectRecorder, ReconnectScenario, ServerTrace};
use stagger_sim::storm::Measurements;

use super::compare::{ComparedRun, burst, simulations};
use super::log::ClientTrace;
use super::serve::Served;

/// A finished run of one policy.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) policy: Policy,
    pub(super) observed: Observed,
    pub(super) measured: Measurements,
    pub(super) doubts: Doubts,
}

/// Reasons why the figures may differ from those of simulations, which do not matter if they agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Doubts {
    /// What the clients' own processes did.
    pub(super) clients: Vec<String>,
    /// What the machine did, perhaps for other programs and without any effect on the run: it explains no gross
    /// difference.
    pub(super) machine: Option<String>,
}

/// What the figures of a run are computed from.
#[derive(Debug)]
pub(super) enum Observed {
    /// What each client recorded.
    ByClients(Vec<ClientTrace>),
    /// What the server saw of clients that record nothing.
    ByServer(ServerView),
}

/// Returns the figures of clients that recorded what they did.
pub(super) fn by_clients(traces: &[ClientTrace], scenario: &ReconnectScenario, peak_backlog: u64) -> ReconnectFigures {
    let mut record = ReconnectRecorder::new(scenario);
    for ClientTrace { lost, attempts, outcome } in traces {
        record.record_client(&reconnect::ClientTrace { lost: *lost, attempts, outcome: *outcome });
    }
    record.figures(peak_backlog)
}

/// What the server saw after its restart. Times are measured from the kill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerView {
    pub(super) arrivals: Vec<Duration>,
    pub(super) connects: Vec<Duration>,
}

impl ServerView {
    pub(super) fn of_server(served: &Served) -> Self {
        let times = |micros: &[u64]| micros.iter().copied().map(Duration::from_micros).collect();
        Self { arrivals: times(&served.arrived_at_us), connects: times(&served.connected_at_us) }
    }

    /// Returns what a server that starts at `up_at` would have seen of a simulation with a sample of all clients. The
    /// kernel refuses the attempts before `up_at`, so no server sees them.
    fn of_simulation(figures: &ReconnectFigures, up_at: Duration) -> Self {
        let arrivals = figures.sample.iter().flatten().copied().filter(|at| *at >= up_at).collect();
        let mut connects: Vec<Duration> = figures.sample_connects.iter().flatten().copied().collect();
        connects.sort_unstable();
        Self { arrivals, connects }
    }

    /// Returns the figures of this view.
    pub(super) fn figures(&self, scenario: &ReconnectScenario, peak_backlog: u64) -> ComparedRun {
        let mut recorder = ReconnectRecorder::new(scenario);
        recorder.record_server(&ServerTrace { arrivals: &self.arrivals, connects: &self.connects });
        ComparedRun { figures: recorder.figures(peak_backlog), burst: burst(self.arrivals.clone()) }
    }
}

/// Runs the simulations that clients of a command are compared with, and returns what their servers saw.
pub(super) fn simulate(scenario: &ReconnectScenario, policy: &Policy, seed: Seed, up_at: Duration) -> Vec<ComparedRun> {
    let view =
        |figures: ReconnectFigures| ServerView::of_simulation(&figures, up_at).figures(scenario, figures.peak_backlog);
    simulations(scenario, policy, seed).map(view).collect()
}

#[cfg(test)]
mod tests {
    use super::super::compare::agreement;
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn scenario(clients: u64, down: Duration) -> ReconnectScenario {
        let scenario = ReconnectScenario::builder(clients).rate(100.0).backlog(50).down_for(down);
        scenario.one_way(Duration::ZERO, Duration::ZERO).disconnect_window(Duration::ZERO).build().unwrap()
    }

    #[test]
    fn the_server_of_a_simulation_sees_no_attempt_while_it_is_down() {
        let policy: Policy = "constant base=1s jitter=none max-attempts=none".parse().unwrap();
        let down = Duration::from_millis(2_500);
        let simulated = simulate(&scenario(20, down), &policy, Seed::new(1), down);
        for ComparedRun { figures, burst } in simulated {
            assert_eq!(burst, 20);
            // Each client makes its third attempt when the server is up again, and needs no other.
            assert_eq!((figures.attempts, figures.connected, figures.peak()), (20, 20, 20));
            assert_eq!(figures.arrivals.counts().len(), 31);
        }
    }

    #[test]
    fn figures_beyond_the_simulations_by_more_than_a_tenth_disagree() {
        let scenario = scenario(1_000, Duration::ZERO);
        let agrees = |measured: &str, simulated: &str| {
            let [measured, simulated] = [measured, simulated]
                .map(|text| simulate(&scenario, &text.parse().unwrap(), Seed::new(9), Duration::ZERO));
            agreement(&measured[0], &simulated, &mut Vec::new(), &Doubts::default())
        };
        let policy = "exponential base=1s cap=8s max-attempts=none";
        assert_eq!(agrees(policy, policy).agrees, Some(true));
        let other = agrees("exponential base=2s cap=8s max-attempts=none", policy);
        assert_eq!(other.agrees, Some(false));
        let (figure, difference) = other.largest_difference().unwrap();
        assert!(!figure.agrees && difference.abs() > 0.1, "{figure:?}");
    }

    #[test]
    fn clients_that_give_up_agree_with_simulated_clients_that_do_and_with_no_others() {
        let scenario = scenario(1_000, seconds(5));
        let run = |text: &str| simulate(&scenario, &text.parse().unwrap(), Seed::new(9), seconds(5));
        let [few, many] = [3, 20].map(|most| run(&format!("constant base=1s jitter=none max-attempts={most}")));
        assert_eq!(few[0].figures.recovered_p99, None, "no client is back before the server");
        assert_eq!(agreement(&few[0], &few, &mut Vec::new(), &Doubts::default()).agrees, Some(true));
        let other = agreement(&few[0], &many, &mut Vec::new(), &Doubts::default());
        let half = other.figures.iter().find(|compared| compared.figure == "recovered_p50_s").unwrap();
        assert_eq!((half.measured, half.agrees, other.agrees), (None, false, Some(false)));
        assert!(half.simulated.is_some(), "with more attempts, half of the clients are back");
    }
}
