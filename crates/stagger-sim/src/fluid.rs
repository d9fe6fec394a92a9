//! The mean-field (fluid) approximation of [`reconnect`](crate::reconnect): instead of individual clients, it tracks
//! shares of the clients, in cohorts by retry number.
//!
//! Its cost does not depend on the number of clients, so it is fast enough for a search over policies and for
//! interactive use. As an independent computation of the same figures, it also verifies the exact simulation: with a
//! million clients both agree to 0.5 % in attempts.
//!
//! Time advances in steps of 5 ms. Of the attempts that arrive in a step, as many are accepted as the backlog permits;
//! the rest is distributed over the delays of the policy's [forecast](stagger_core::Policy::quantile) and the network
//! delay in both directions. The model is deterministic: its figures do not include random variation among few clients.
//!
//! Policies whose delays depend on previous delays have no cohorts, and some settings depend on more than the number of
//! retries of a client: see [`NotSimulable`].
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::Policy;
//! use stagger_sim::{fluid, reconnect::ReconnectScenario};
//!
//! let scenario = ReconnectScenario::builder(1_000_000).rate(20_000.0).backlog(10_000).build()?;
//! let policy = Policy::exponential(Duration::from_millis(500), Duration::from_secs(30)).unlimited_attempts().build()?;
//! let figures = fluid::run(&scenario, &policy)?;
//! assert!((figures.attempts_per_client - 6.268).abs() < 0.03);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

use core::fmt;
use core::time::Duration;

use stagger_core::Policy;

use crate::engine::TimeSeries;
use crate::reconnect::{FirstAttempt, ReconnectScenario, RetryAfter};

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

/// The results of a mass disconnect, as shares of the clients.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FluidFigures {
    /// Mean number of attempts per client.
    pub attempts_per_client: f64,
    /// Share of the clients connected at the end.
    pub connected: f64,
    /// Share of the clients that gave up.
    pub gave_up: f64,
    /// Arrivals per 100 ms, as shares of the clients.
    pub arrivals: Vec<f64>,
    /// Maximum number of pending handshakes at the server, as a share of the clients.
    pub peak_backlog: f64,
    /// Time at which half of all clients were connected; `None` if never.
    pub t50: Option<Duration>,
    /// Time at which 99 % of all clients were connected; `None` if never.
    pub t99: Option<Duration>,
    /// Time at which less than half a client was missing; `None` if never.
    pub t100: Option<Duration>,
    /// Mean recovery time: from the loss of a connection until the client is connected again, over connected clients.
    /// Assumes that connected clients lost their connections at the mean time of all clients, which underestimates it
    /// if only the clients that lost theirs first were connected.
    pub recovered_mean: Duration,
}

impl FluidFigures {
    /// Returns the maximum number of arrivals within 100 ms, as a share of the clients.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.arrivals.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the maximum number of arrivals within ten consecutive bins of 100 ms, as a share of the clients.
    #[must_use]
    pub fn peak_second(&self) -> f64 {
        let second = |end: usize| self.arrivals[end.saturating_sub(10)..end].iter().sum();
        (1..=self.arrivals.len()).map(second).fold(0.0, f64::max)
    }
}

/// Why a scenario or a policy cannot be computed with the fluid model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotSimulable {
    /// Delays depend on previous delays.
    Delays,
    /// The server sends hints.
    RetryAfter,
    /// The one-way delay can exceed ten seconds.
    Network,
    /// The limit of attempts is above 256.
    Attempts,
    /// The time limit is reached before all clients are back: it stops each client at a different time.
    Elapsed,
    /// The computation would take minutes, or gigabytes of memory.
    Work,
}

/// Displays the reason as a lower-case fragment, with a fix.
impl fmt::Display for NotSimulable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delays => "each delay depends on the previous one; use the exact simulation",
            Self::RetryAfter => "the server's hints differ from client to client; use the exact simulation",
            Self::Network => "the one-way delay exceeds 10 s; use the exact simulation",
            Self::Attempts => "the limit of attempts is above 256; lower it, or use the exact simulation",
            Self::Elapsed => "the time limit stops clients before all are back; use the exact simulation",
            Self::Work => "the computation would take too long; lower the horizon, or use the exact simulation",
        })
    }
}

impl core::error::Error for NotSimulable {}

/// The simulation ends when the share of waiting clients is below this, and below half a client.
const NEGLIGIBLE: f64 = 1e-6;

/// Maximum number of multiplications and additions: a few seconds.
const MAX_WORK: usize = 4_000_000_000;

/// Maximum length of the rings of all cohorts together: half a gigabyte.
const MAX_RING_STEPS: usize = 1 << 26;

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
        let mut cohorts: Vec<_> = delays.after.iter().map(|_| Cohort::new(self.ways[1].len(), self.horizon)).collect();
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
            if rejected > 0.0 {
                work += self.reject(step, rejected, &arrived, delays, &mut cohorts);
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

    /// Lets the rejected share of each cohort's arrivals wait for its next attempt, or give up. Returns the number of
    /// additions.
    fn reject(
        &mut self,
        step: usize,
        rejected: f64,
        arrived: &[f64],
        delays: &AttemptDelays,
        cohorts: &mut [Cohort],
    ) -> usize {
        let last = cohorts.len() - 1;
        let mut work = 0;
        for (attempt, distribution) in delays.after.iter().enumerate() {
            let share = rejected * arrived[attempt];
            if share <= 0.0 {
                continue;
            }
            match distribution {
                Some(distribution) => {
                    // All attempts from the last cohort on have the same delays.
                    cohorts[(attempt + 1).min(last)].add(step, share, distribution);
                    work += distribution.pieces.len();
                }
                None => self.figures.gave_up += share,
            }
        }
        work
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

/// The delays of a policy before its attempts.
struct AttemptDelays {
    first: Distribution,
    /// The delay after each failed attempt; the last entry also applies to all later attempts. `None` if the client
    /// gives up.
    after: Vec<Option<Distribution>>,
}

/// Above this limit of attempts, there would be too many cohorts.
const MAX_ATTEMPTS: u32 = 256;

/// Maximum one-way delay: the arrivals of a step are a sum over all steps in which they may have been sent.
const MAX_ONE_WAY: Duration = Duration::from_secs(10);

/// The delays of later retries are assumed to equal that of this one. With a multiplier of 1.1 it is 10¹⁰ times the
/// base.
const MAX_RETRIES: u32 = 256;

impl AttemptDelays {
    /// Creates the distributions; returns `None` if the policy makes no attempt.
    fn new(scenario: &ReconnectScenario, policy: &Policy) -> Result<Option<Self>, NotSimulable> {
        let limit = policy.max_attempts().map(|limit| limit.get());
        let reasons = [
            (!policy.has_independent_delays(), NotSimulable::Delays),
            (scenario.retry_after != RetryAfter::None, NotSimulable::RetryAfter),
            (scenario.network.bounds().1 > MAX_ONE_WAY, NotSimulable::Network),
            (limit.is_some_and(|limit| limit > MAX_ATTEMPTS), NotSimulable::Attempts),
        ];
        if let Some((_, reason)) = reasons.into_iter().find(|(applies, _)| *applies) {
            return Err(reason);
        }
        let starts_with_spread = scenario.first_attempt == FirstAttempt::Immediate || !policy.spread().is_zero();
        let (first, next) = if starts_with_spread {
            (Some(Distribution::uniform(0.0, steps(policy.spread()))), 1)
        } else {
            (Distribution::for_retry(policy, 1), 2)
        };
        let Some(first) = first else { return Ok(None) };
        // A limit counts the loss that takes the first delay.
        let attempts = match limit {
            Some(limit) => limit + 1 - next,
            None => first_stationary_retry(policy).saturating_sub(next) + 2,
        };
        if attempts == 0 {
            return Ok(None);
        }
        let mut after: Vec<_> = (next..next + attempts).map(|n| Distribution::for_retry(policy, n)).collect();
        if let (Some(_), Some(last)) = (limit, after.last_mut()) {
            *last = None;
        }
        Ok(Some(Self { first, after }))
    }
}

/// Returns the first retry whose delay distribution equals that of all later ones.
fn first_stationary_retry(policy: &Policy) -> u32 {
    let last_change = (1..MAX_RETRIES).rev().find(|&n| policy.bounds(n) != policy.bounds(n + 1));
    match last_change {
        Some(n) => n + 1,
        None => 1,
    }
}

/// The clients that wait for the same attempt: the share of them that sends in each step. Times are in steps.
///
/// A uniform piece is stored as the two changes at its ends, so its cost does not depend on its length.
struct Cohort {
    /// Changes of the share that is sent per step, in a ring.
    changes: Vec<f64>,
    /// The share sent in the current step, without its change.
    level: f64,
    /// The shares sent in previous steps, as far back as they may be in flight, in a ring.
    sent: Vec<f64>,
    /// The steps between which there is something to send or in flight.
    busy: (usize, usize),
    horizon: usize,
}

impl Cohort {
    /// Creates a cohort for network delays of at most `way` steps. Nothing is sent after the horizon.
    fn new(way: usize, horizon: usize) -> Self {
        let sent = vec![0.0; way.next_power_of_two()];
        Self { changes: vec![0.0; 64], level: 0.0, sent, busy: (0, 0), horizon }
    }

    const fn is_busy(&self, step: usize) -> bool {
        self.busy.0 <= step && step < self.busy.1
    }

    /// Returns the first step from `step` on in which there is anything to send or in flight.
    fn next(&self, step: usize) -> Option<usize> {
        if step < self.busy.1 { Some(self.busy.0.max(step)) } else { None }
    }

    fn ring_len(&self) -> usize {
        self.changes.len()
    }

    /// Adds a share that waits for a delay with this distribution, from the middle of this step on.
    fn add(&mut self, step: usize, share: f64, distribution: &Distribution) {
        if step >= self.busy.1 {
            // What is left is rounding error.
            self.level = 0.0;
            self.sent.fill(0.0);
            self.busy = (usize::MAX, step);
        }
        for UniformPiece { share: part, from, to } in &distribution.pieces {
            // A point mass is spread over one step.
            let (from, to) =
                if to - from < 1.0 { ((from + to) / 2.0, (from + to) / 2.0 + 1.0) } else { (from + 0.5, to + 0.5) };
            let height = share * part / (to - from);
            self.change(step, from, height);
            self.change(step, to, -height);
        }
    }

    /// Increases the share sent per step by `by`, from the time `at` after the start of this step.
    fn change(&mut self, step: usize, at: f64, by: f64) {
        let (whole, part) = (at as usize, at.fract());
        let begins = step.saturating_add(whole);
        self.busy.0 = self.busy.0.min(begins);
        if begins > self.horizon {
            // The change lies after the horizon; the current level continues until then.
            self.busy.1 = self.busy.1.max(self.horizon + 1);
            return;
        }
        self.busy.1 = self.busy.1.max(begins + 2 + self.sent.len());
        if whole + 1 >= self.changes.len() {
            self.grow(step, whole + 2);
        }
        let mask = self.changes.len() - 1;
        self.changes[begins & mask] += by * (1.0 - part);
        self.changes[(begins + 1) & mask] += by * part;
    }

    #[cold]
    fn grow(&mut self, step: usize, length: usize) {
        let mut longer = vec![0.0; length.next_power_of_two()];
        let (old, new) = (self.changes.len() - 1, longer.len() - 1);
        for step in step..step + self.changes.len() {
            longer[step & new] = self.changes[step & old];
        }
        self.changes = longer;
    }

    /// Returns the share that arrives in this step, with the given distribution of the network delay.
    fn arrive(&self, step: usize, ways: &[f64]) -> f64 {
        let mask = self.sent.len() - 1;
        ways.iter().zip(0..).map(|(share, way)| share * self.sent[step.wrapping_sub(way) & mask]).sum()
    }

    fn advance(&mut self, step: usize) {
        let (changes, sent) = (self.changes.len() - 1, self.sent.len() - 1);
        self.level += core::mem::take(&mut self.changes[step & changes]);
        self.sent[step & sent] = self.level;
        // A network delay of 0 steps has the weight 0; clears the entry that is read for it.
        self.sent[(step + 1) & sent] = 0.0;
    }
}

/// A piecewise uniform distribution of a delay. Times are in steps.
#[derive(Clone, Debug, Default, PartialEq)]
struct Distribution {
    pieces: Vec<UniformPiece>,
}

/// A share of the probability that is uniform between two times, or a point mass if they are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
struct UniformPiece {
    share: f64,
    from: f64,
    to: f64,
}

/// Number of parts into which a distribution is divided before adjacent parts of equal density are merged.
const PARTS: usize = 256;

impl Distribution {
    fn uniform(from: f64, to: f64) -> Self {
        Self { pieces: vec![UniformPiece { share: 1.0, from, to }] }
    }

    /// Returns the distribution of the delay before retry `n` of a policy; `None` if there is no such retry.
    fn for_retry(policy: &Policy, n: u32) -> Option<Self> {
        let shares: [f64; PARTS + 1] = core::array::from_fn(|part| part as f64 / PARTS as f64);
        let ends = policy.quantiles(n, shares)?.map(steps);
        let mut pieces: Vec<UniformPiece> = Vec::new();
        for pair in ends.windows(2) {
            let width = pair[1] - pair[0];
            match pieces.last_mut() {
                Some(last) if (width - last.width_of_a_part()).abs() < 1e-3 => {
                    last.share += 1.0 / PARTS as f64;
                    last.to = pair[1];
                }
                _ => pieces.push(UniformPiece { share: 1.0 / PARTS as f64, from: pair[0], to: pair[1] }),
            }
        }
        Some(Self { pieces })
    }

    /// Returns the distribution of the sum of `ways` uniform network delays, as weights of whole steps.
    fn network_weights(ways: u32, from: f64, to: f64) -> Vec<f64> {
        // Computes the density of the sum on a grid finer than a step.
        const FINE: usize = 64;
        let cells = (((to - from) * FINE as f64).round() as usize).max(1);
        let mut density = vec![1.0];
        for _ in 0..ways {
            // Convolution with a uniform density is a moving sum.
            let mut window = 0.0;
            let sum = (0..density.len() + cells - 1).map(|at| {
                window += density.get(at).copied().unwrap_or_default();
                if at >= cells {
                    window -= density[at - cells];
                }
                window / cells as f64
            });
            let sum = sum.collect();
            density = sum;
        }
        let mut weights = Vec::new();
        for (at, share) in density.into_iter().enumerate() {
            // The middle of the cell, rounded to the nearest step, but never to the sending step, which is over.
            let time = f64::from(ways) * from + (at as f64 + f64::from(ways) / 2.0) / FINE as f64;
            let step = (time.round() as usize).max(1);
            if weights.len() <= step {
                weights.resize(step + 1, 0.0);
            }
            weights[step] += share;
        }
        weights
    }
}

impl UniformPiece {
    fn width_of_a_part(&self) -> f64 {
        (self.to - self.from) / (self.share * PARTS as f64)
    }
}

/// The time step: short compared with typical round trips, long enough for a fast computation.
const STEP: Duration = Duration::from_millis(5);

const STEPS_OF_A_BIN: usize = (TimeSeries::BIN_WIDTH.as_millis() / STEP.as_millis()) as usize;

fn steps(length: Duration) -> f64 {
    length.as_secs_f64() / STEP.as_secs_f64()
}

fn time(steps: f64) -> Duration {
    STEP.mul_f64(steps)
}

#[cfg(test)]
mod tests {
    use stagger_core::profile::Profile;

    use super::*;

    fn arrivals(distribution: &Distribution, steps: usize) -> Vec<f64> {
        let mut cohort = Cohort::new(2, 1_000);
        cohort.add(0, 1.0, distribution);
        let step = |step| {
            let arrived = cohort.arrive(step, &[0.0, 1.0]);
            cohort.advance(step);
            arrived
        };
        (0..steps).map(step).collect()
    }

    #[test]
    fn a_uniform_piece_arrives_evenly_and_completely() {
        for (from, to) in [(10, 20), (100, 900)] {
            let got = arrivals(&Distribution::uniform(from as f64, to as f64), 1_000);
            let each = 1.0 / (to - from) as f64;
            assert!((got.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{got:?}");
            assert!(got[from + 2..=to].iter().all(|share| (share - each).abs() < 1e-12), "{got:?}");
            // Half of the first and of the last step, because it starts in the middle of a step.
            let ends = [got[from + 1], got[to + 1]];
            assert!(ends.iter().all(|share| (share - each / 2.0).abs() < 1e-12), "{ends:?}");
        }
    }

    #[test]
    fn a_point_mass_arrives_within_one_step() {
        for at in [0_u16, 7] {
            let got = arrivals(&Distribution::uniform(f64::from(at), f64::from(at)), 20);
            assert!((got[usize::from(at) + 1] - 1.0).abs() < 1e-12, "{got:?}");
        }
    }

    #[test]
    fn nothing_is_sent_after_the_horizon() {
        assert!(arrivals(&Distribution::uniform(500.0, 1_500.0), 1_000).iter().sum::<f64>() < 0.5);
        assert!(arrivals(&Distribution::uniform(5e9, 5e9), 1_000).iter().sum::<f64>() < 1e-12);
    }

    #[test]
    fn a_uniform_delay_is_one_piece_and_a_capped_delay_has_few() {
        let full = Policy::exponential(Duration::from_secs(1), Duration::from_secs(8)).build().unwrap();
        assert_eq!(Distribution::for_retry(&full, 2), Some(Distribution::uniform(0.0, 400.0)));
        let none = full.to_builder().jitter(stagger_core::Jitter::None).build().unwrap();
        assert_eq!(Distribution::for_retry(&none, 1), Some(Distribution::uniform(200.0, 200.0)));
        // A ceiling of 8 s ± 10 %, capped at 8.4 s after the draw.
        let cut = "stubborn-io cap=8400ms base=8s".parse().unwrap();
        let pieces = Distribution::for_retry(&cut, 1).unwrap().pieces;
        assert!(pieces.len() <= 3, "{pieces:?}");
    }

    #[test]
    fn pieces_sum_to_one_and_have_the_mean_of_the_delay() {
        for profile in Profile::all().filter(|profile| profile.policy().has_independent_delays()) {
            let policy = profile.policy();
            for n in 1..8 {
                let Some(Distribution { pieces }) = Distribution::for_retry(&policy, n) else { continue };
                let whole: f64 = pieces.iter().map(|piece| piece.share).sum();
                let mean: f64 = pieces.iter().map(|piece| piece.share * (piece.from + piece.to) / 2.0).sum();
                let want = steps(policy.mean(n).unwrap());
                assert!((whole - 1.0).abs() < 1e-9, "{} {n}: {whole}", profile.name());
                assert!((mean - want).abs() < 1e-3 * want + 1e-3, "{} {n}: {mean} is not {want}", profile.name());
            }
        }
    }

    #[test]
    fn network_weights_have_the_mean_and_variance_of_the_sum() {
        let weights = Distribution::network_weights(2, 2.0, 8.0);
        let whole: f64 = weights.iter().sum();
        let mean: f64 = weights.iter().enumerate().map(|(step, weight)| step as f64 * weight).sum();
        let square: f64 = weights.iter().enumerate().map(|(step, weight)| (step as f64 - mean).powi(2) * weight).sum();
        assert!((whole - 1.0).abs() < 1e-9 && (mean - 10.0).abs() < 0.01, "{whole} {mean}");
        // The variance of two uniform delays of six steps, plus 1/12 for rounding to steps.
        assert!((square - (2.0 * 36.0 + 1.0) / 12.0).abs() < 0.05, "{square}");
        assert_eq!(weights[..4], [0.0; 4]);
        let immediate = Distribution::network_weights(1, 0.0, 0.0);
        assert_eq!(immediate, [0.0, 1.0], "no message arrives in the step it was sent in");
    }
}
