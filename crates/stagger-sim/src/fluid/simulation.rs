use core::time::Duration;

use stagger_core::Policy;

use super::attempt_delays::AttemptDelays;
use super::cohort::Cohort;
use super::distribution::Distribution;
use super::step::{STEP, STEPS_OF_A_BIN, steps, time};
use super::{FluidFigures, NotSimulable};
use crate::reconnect::ReconnectScenario;

/// The simulation ends when the share of waiting clients is below this, and below half a client.
const NEGLIGIBLE: f64 = 1e-6;

/// Maximum number of multiplications and additions: a few seconds.
const MAX_WORK: usize = 4_000_000_000;

/// Maximum length of the rings of all cohorts together: half a gigabyte.
const MAX_RING_STEPS: usize = 1 << 26;

/// Computes the figures of a scenario with this policy in the limit of many clients.
///
/// # Errors
/// Returns [`NotSimulable`] if shares of clients do not suffice to represent the scenario.
pub fn run(scenario: &ReconnectScenario, policy: &Policy) -> Result<FluidFigures, NotSimulable> {
    match AttemptDelays::new(scenario, policy)? {
        Some(delays) => FluidSimulation::new(scenario).run(&delays, policy.max_elapsed().map_or(f64::INFINITY, steps)),
        None => Ok(FluidFigures { gave_up: 1.0, ..FluidFigures::default() }),
    }
}

/// The state of the server and the figures so far. Units are shares of the clients and steps of time.
struct FluidSimulation {
    half_a_client: f64,
    /// Distribution of the network delay: one way for first attempts, a round trip for later attempts.
    ways: [Vec<f64>; 2],
    back: f64,
    disconnect_window: f64,
    horizon: usize,
    up_at: usize,
    /// Number of handshakes per step, and the size of the backlog.
    rate: f64,
    backlog: f64,
    waiting: f64,
    /// Sum of the connect times of all connected clients.
    times: f64,
    /// The share that was accepted, but is connected after the horizon.
    unfinished: f64,
    figures: FluidFigures,
}

impl FluidSimulation {
    fn new(scenario: &ReconnectScenario) -> Self {
        let clients = scenario.clients() as f64;
        let (least, most) = scenario.network.bounds();
        let (least, most) = (steps(least), steps(most));
        Self {
            half_a_client: 0.5 / clients,
            ways: [1, 2].map(|ways| Distribution::network_weights(ways, least, most)),
            back: (least + most) / 2.0,
            disconnect_window: steps(Duration::from_micros(scenario.disconnect_window)),
            horizon: steps(Duration::from_micros(scenario.horizon)) as usize,
            up_at: steps(Duration::from_micros(scenario.up_at)) as usize,
            rate: scenario.rate() * STEP.as_secs_f64() / clients,
            backlog: f64::from(scenario.backlog) / clients,
            waiting: 0.0,
            times: 0.0,
            unfinished: 0.0,
            figures: FluidFigures::default(),
        }
    }

    fn run(mut self, delays: &AttemptDelays, limit: f64) -> Result<FluidFigures, NotSimulable> {
        let last = delays.after.len() - 1;
        let mut cohorts: Vec<_> = (0..=last).map(|_| Cohort::new(self.ways[1].len(), self.horizon)).collect();
        let mut arrived = vec![0.0; cohorts.len()];
        let (mut step, mut work) = (0, 0);
        while step <= self.horizon {
            let missing = 1.0 - self.figures.connected - self.figures.gave_up - self.unfinished;
            if missing < NEGLIGIBLE.min(self.half_a_client) {
                break;
            }
            if step as f64 > limit {
                return Err(NotSimulable::Elapsed);
            }
            let disconnected = self.disconnected_share(step);
            if disconnected > 0.0 {
                cohorts[0].add(step, disconnected, &delays.first);
            }
            for (attempt, (cohort, arrived)) in cohorts.iter().zip(&mut arrived).enumerate() {
                let ways = &self.ways[attempt.min(1)];
                let is_busy = cohort.is_busy(step);
                *arrived = if is_busy { cohort.arrive(step, ways) } else { 0.0 };
                work += if is_busy { ways.len() } else { 1 };
            }
            // Rounding errors can make it slightly negative.
            let arrives = arrived.iter().sum::<f64>().max(0.0);
            let accepted = self.serve(step, arrives);
            let rejected = if arrives > accepted { 1.0 - accepted / arrives } else { 0.0 };
            for (attempt, distribution) in delays.after.iter().enumerate().filter(|_| rejected > 0.0) {
                let share = rejected * arrived[attempt];
                match distribution {
                    _ if share <= 0.0 => {}
                    Some(distribution) => {
                        cohorts[(attempt + 1).min(last)].add(step, share, distribution);
                        work += distribution.pieces.len();
                    }
                    None => self.figures.gave_up += share,
                }
            }
            cohorts.iter_mut().filter(|cohort| cohort.is_busy(step)).for_each(|cohort| cohort.advance(step));
            if work > MAX_WORK || cohorts.iter().map(Cohort::ring_len).sum::<usize>() > MAX_RING_STEPS {
                return Err(NotSimulable::Work);
            }
            let next = self.next(step, &cohorts);
            self.waiting = (self.waiting - self.rate * (next - step - 1) as f64).max(0.0);
            step = next;
        }
        self.figures.recovered_mean =
            time((self.times / self.figures.connected.max(f64::MIN_POSITIVE) - self.disconnect_window / 2.0).max(0.0));
        Ok(self.figures)
    }

    /// Returns the next step in which anything happens; the horizon, and after it the following step, if there is none.
    fn next(&self, step: usize, cohorts: &[Cohort]) -> usize {
        let next = step + 1;
        if (next as f64) < self.disconnect_window {
            return next;
        }
        let busy = cohorts.iter().filter_map(|cohort| cohort.next(next)).min();
        busy.unwrap_or(usize::MAX).min(self.horizon).max(next)
    }

    fn disconnected_share(&self, step: usize) -> f64 {
        let until = |step: f64| if step >= self.disconnect_window { 1.0 } else { step / self.disconnect_window };
        match step {
            0 => until(1.0),
            step => until(step as f64 + 1.0) - until(step as f64),
        }
    }

    /// Handles the arrivals of a step. Returns the share that is accepted.
    fn serve(&mut self, step: usize, arrives: f64) -> f64 {
        let figures = &mut self.figures;
        figures.attempts_per_client += arrives;
        let bin = step / STEPS_OF_A_BIN;
        if bin >= figures.arrivals.len() {
            figures.arrivals.resize(bin + 1, 0.0);
        }
        figures.arrivals[bin] += arrives;
        if step < self.up_at {
            return 0.0;
        }
        let accepted = arrives.min(self.backlog - self.waiting + self.rate);
        self.waiting += accepted;
        figures.peak_backlog = figures.peak_backlog.max(self.waiting - self.rate);
        // Handshakes are sequential: the client accepted last is connected last.
        let connected = step as f64 + 0.5 + self.waiting / self.rate + self.back;
        self.waiting = (self.waiting - self.rate).max(0.0);
        // Handshakes of this step complete up to `connected`, some of them after the horizon.
        let late = ((connected - self.horizon as f64) * self.rate).min(accepted).max(0.0);
        self.unfinished += late;
        let in_time = accepted - late;
        self.times += in_time * connected.min(self.horizon as f64);
        figures.connected += in_time;
        for (share, at) in
            [(0.5, &mut figures.t50), (0.99, &mut figures.t99), (1.0 - self.half_a_client, &mut figures.t100)]
        {
            if figures.connected >= share {
                at.get_or_insert_with(|| time(connected.min(self.horizon as f64)));
            }
        }
        accepted
    }
}
