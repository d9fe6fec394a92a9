//! Figures of real clients, with the definitions of the simulation.

use core::time::Duration;

use stagger_core::Seed;

use super::tally::Tally;
use super::{ReconnectFigures, ReconnectScenario};
use crate::client_policy::ClientPolicy;
use crate::engine::micros;

/// Computes [`ReconnectFigures`] from the traces of real clients, with the same definitions as the simulation.
///
/// ```
/// use core::time::Duration;
/// use stagger_sim::reconnect::{AttemptTrace, ClientTrace, ClientOutcome, ReconnectRecorder, ReconnectScenario};
///
/// let ms = Duration::from_millis;
/// let scenario = ReconnectScenario::builder(1).rate(100.0).build()?;
/// let mut recorder = ReconnectRecorder::new(&scenario);
/// let attempts = [
///     AttemptTrace { sent: ms(40), answered: Some(ms(50)) },
///     AttemptTrace { sent: ms(90), answered: Some(ms(110)) },
/// ];
/// recorder.record_client(&ClientTrace { lost: ms(10), attempts: &attempts, outcome: ClientOutcome::Connected });
///
/// let figures = recorder.figures(1);
/// assert_eq!((figures.attempts, figures.connected, figures.t100), (2, 1, Some(ms(110))));
/// assert_eq!((figures.recovered_mean, figures.waited_mean), (ms(100), ms(70)));
/// # Ok::<(), stagger_sim::ScenarioError>(())
/// ```
#[derive(Debug)]
pub struct ReconnectRecorder<'a> {
    scenario: &'a ReconnectScenario,
    tally: Tally,
    clients: u32,
}

/// The trace of one client. Times are measured from the start of the scenario and must be non-decreasing. Complete: it
/// is the input of [`ReconnectRecorder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTrace<'a> {
    /// Time at which the client lost its connection.
    pub lost: Duration,
    /// The attempts of the client.
    pub attempts: &'a [AttemptTrace],
    /// The outcome for the client.
    pub outcome: ClientOutcome,
}

/// One attempt of a client. Complete: it is the input of [`ReconnectRecorder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptTrace {
    /// Time at which it was sent, which stands for its arrival.
    pub sent: Duration,
    /// Time at which the client received the answer; `None` if it never did.
    pub answered: Option<Duration>,
}

/// The outcome for a client. Complete: there are no other outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientOutcome {
    /// The last attempt connected the client.
    Connected,
    /// The client made its last attempt without success.
    GaveUp,
    /// The client would have continued.
    Unfinished,
}

/// What a server sees of its clients after a restart, without knowing which is which. Times are measured from the start
/// of the scenario. Complete: it is the input of [`ReconnectRecorder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTrace<'a> {
    /// Times at which attempts arrived.
    pub arrivals: &'a [Duration],
    /// Times at which clients were connected.
    pub connects: &'a [Duration],
}

impl<'a> ReconnectRecorder<'a> {
    /// Creates an empty recorder. Of the scenario, only the number of clients, the rate and the sample are used.
    #[must_use]
    pub fn new(scenario: &'a ReconnectScenario) -> Self {
        Self { scenario, tally: Tally::default(), clients: 0 }
    }

    /// Returns the seed of a simulated client, numbered from 0. A real client with this seed that lost its first
    /// connection draws the same delays.
    #[must_use]
    pub fn client_seed(run: Seed, client: u32) -> Seed {
        ClientPolicy::seed_of_client(run, client)
    }

    /// Records the trace of the next client.
    pub fn record_client(&mut self, trace: &ClientTrace<'_>) {
        let (id, tally) = (self.clients, &mut self.tally);
        self.clients += 1;
        let is_sampled = id < self.scenario.sample;
        let mut free = micros(trace.lost);
        if is_sampled {
            tally.sample.losses.record(id, free);
        }
        for attempt in trace.attempts {
            let sent = micros(attempt.sent);
            tally.arrivals.add(sent);
            if is_sampled {
                tally.sample.arrivals.record(id, sent);
            }
            tally.total_wait += sent.saturating_sub(free);
            tally.in_flight.start(sent);
            free = attempt.answered.map_or(sent, micros);
        }
        let count = u32::try_from(trace.attempts.len()).unwrap_or(u32::MAX);
        // The last attempt of a connected client ends when the client is connected.
        let (successful, failed) = match trace.attempts.split_last() {
            Some((last, earlier)) if trace.outcome == ClientOutcome::Connected => (Some(last), earlier),
            _ => (None, trace.attempts),
        };
        for answered in failed.iter().filter_map(|attempt| attempt.answered) {
            tally.in_flight.end(micros(answered));
        }
        match successful {
            Some(attempt) => {
                let at = micros(attempt.answered.unwrap_or(attempt.sent));
                tally.connected(at, at.saturating_sub(micros(trace.lost)), count);
                if is_sampled {
                    tally.sample.connects.record(id, at);
                }
            }
            None if trace.outcome == ClientOutcome::GaveUp => tally.gave_up(count),
            None => tally.unfinished += 1,
        }
    }

    /// Records what a server saw of all clients, instead of their traces. Connections beyond the number of clients are
    /// ignored.
    ///
    /// A server knows neither which client makes an attempt nor when a client notices a loss, so recovery times run
    /// from the start of the scenario, and what belongs to single clients is `None`, zero or empty: the attempts and
    /// the waits of each, those in flight, and how many gave up.
    pub fn record_server(&mut self, trace: &ServerTrace<'_>) {
        let tally = &mut self.tally;
        trace.arrivals.iter().for_each(|at| tally.arrivals.add(micros(*at)));
        let clients = usize::try_from(self.scenario.clients()).unwrap_or(usize::MAX);
        let connects = &trace.connects[..trace.connects.len().min(clients)];
        connects.iter().for_each(|at| tally.connected_unknown(micros(*at)));
        tally.unfinished = (clients - connects.len()) as u64;
        tally.is_server_view = true;
    }

    /// Returns the figures. `peak_backlog`, the maximum number of pending handshakes, is known to the server only.
    #[must_use]
    pub fn figures(self, peak_backlog: u64) -> ReconnectFigures {
        self.tally.figures(self.scenario, peak_backlog)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn attempt(sent: u64, answered: Option<u64>) -> AttemptTrace {
        AttemptTrace { sent: ms(sent), answered: answered.map(ms) }
    }

    #[test]
    fn every_client_is_counted_once_with_any_outcome() {
        let scenario = ReconnectScenario::builder(3).rate(10.0).sample(1).build().unwrap();
        let mut recorder = ReconnectRecorder::new(&scenario);
        let tries = [attempt(20, Some(30)), attempt(150, Some(260))];
        for (attempts, outcome) in [
            (&tries[..], ClientOutcome::Connected),
            (&tries[..1], ClientOutcome::GaveUp),
            (&[attempt(25, None)], ClientOutcome::Unfinished),
        ] {
            recorder.record_client(&ClientTrace { lost: ms(10), attempts, outcome });
        }
        let figures = recorder.figures(2);
        assert!(!figures.is_server_view);
        assert_eq!((figures.connected, figures.gave_up, figures.unfinished), (1, 1, 1));
        assert_eq!((figures.attempts, figures.arrivals.counts()), (4, &[3, 1][..]));
        assert_eq!(figures.connects.counts(), [0, 0, 1]);
        assert_eq!((figures.t100, figures.recovered_mean, figures.peak_backlog), (None, ms(250), 2));
        // At 25 ms all three clients have an attempt in flight, one of them forever.
        assert_eq!(figures.peak_in_flight, 3);
        assert_eq!(figures.sample, [vec![ms(20), ms(150)]]);
    }

    #[test]
    fn the_view_of_a_server_has_the_figures_that_need_no_single_client() {
        let scenario = ReconnectScenario::builder(3).rate(10.0).build().unwrap();
        let mut recorder = ReconnectRecorder::new(&scenario);
        let (arrivals, connects) = ([ms(20), ms(150), ms(160)], [ms(30), ms(170)]);
        recorder.record_server(&ServerTrace { arrivals: &arrivals, connects: &connects });
        let figures = recorder.figures(2);
        assert!(figures.is_server_view);
        assert_eq!((figures.connected, figures.gave_up, figures.unfinished), (2, 0, 1));
        assert_eq!((figures.attempts, figures.arrivals.counts()), (3, &[1, 2][..]));
        assert_eq!((figures.t50, figures.t99, figures.peak()), (Some(ms(170)), None, 2));
        assert_eq!((figures.recovered_p50, figures.attempts_p50, figures.peak_in_flight), (Some(ms(170)), None, 0));

        let mut recorder = ReconnectRecorder::new(&scenario);
        recorder.record_server(&ServerTrace { arrivals: &arrivals, connects: &[ms(30); 5] });
        assert_eq!(recorder.figures(0).connected, 3, "no more than there are clients");
    }

    #[test]
    fn a_connected_client_without_attempts_counts_as_unfinished() {
        let scenario = ReconnectScenario::builder(1).build().unwrap();
        let mut recorder = ReconnectRecorder::new(&scenario);
        recorder.record_client(&ClientTrace { lost: ms(1), attempts: &[], outcome: ClientOutcome::Connected });
        assert_eq!(recorder.figures(0).unfinished, 1);
    }
}
