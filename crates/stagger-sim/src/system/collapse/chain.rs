//! The Markov chain of Metafor, for which mean times to a collapse are known exactly.
//!
//! Source: P. Alvaro et al., arXiv 2510.03551, 2025, and the program Metafor. A state is the number in the queue and in the
//! orbit, whose members retry.

use core::time::Duration;

use stagger_core::Seed;

use super::estimate::{CollapseTime, RareCollapse};
use super::splitting::Process;
use crate::engine::progress::Progress;
use crate::environment::distributions::exponential;
use crate::system::state::Stream;

const QUEUE: usize = 99;
const ORBIT: usize = 19;
const COLLAPSED: usize = 90;
const SERVED: f64 = 10.0;
const TIMEOUT: f64 = 3.0;
const RETRIES: f64 = 4.0;
const RETRYING: f64 = 0.25;

/// A state from which a collapse is expected soonest: a queue of 9 and a full orbit.
const FULL_ORBIT: [usize; 2] = [9, ORBIT];

#[derive(Clone)]
struct Chain {
    rate: f64,
    state: [usize; 2],
    now: f64,
    random: Stream,
}

impl Chain {
    fn new(rate: f64, state: [usize; 2]) -> Self {
        Self { rate, state, now: 0.0, random: Stream::new(Seed::new(0)) }
    }

    /// Returns the moves from a state, with their rates.
    fn moves(rate: f64, [queue, orbit]: [usize; 2]) -> [([i32; 2], f64); 5] {
        let (retry, leave) = (RETRIES / ((RETRIES + 1.0) * TIMEOUT), 1.0 / ((RETRIES + 1.0) * TIMEOUT));
        let waiting = orbit as f64;
        let late = late(queue);
        let joins = if orbit < ORBIT { RETRYING * rate * late } else { 0.0 };
        match queue {
            0 => [([1, 0], rate), ([0, -1], waiting * leave), ([1, -1], waiting * retry), ([0; 2], 0.0), ([0; 2], 0.0)],
            QUEUE => {
                let gone = waiting * (retry + leave);
                [([-1, 0], SERVED), ([0, -1], gone), ([0; 2], 0.0), ([0; 2], 0.0), ([0; 2], 0.0)]
            }
            _ => [
                ([1, 1], joins),
                ([1, 0], rate + waiting * retry * late),
                ([1, -1], waiting * retry * (1.0 - late)),
                ([0, -1], waiting * leave),
                ([-1, 0], SERVED),
            ],
        }
    }
}

/// Returns the bound of the probability that an arrival at a queue times out.
fn late(queue: usize) -> f64 {
    let (mean, deviation) = (queue as f64 / SERVED, (queue as f64).sqrt() / SERVED);
    if queue == 0 {
        0.0
    } else if TIMEOUT - mean > deviation {
        (deviation / (TIMEOUT - mean)).powi(2)
    } else {
        1.0
    }
}

impl Process for Chain {
    fn fork(&self, seed: Seed) -> Self {
        Self { random: Stream::new(seed), ..*self }
    }

    fn step(&mut self) {
        let moves = Self::moves(self.rate, self.state);
        let total: f64 = moves.iter().map(|(_, rate)| rate).sum();
        self.now += exponential(self.random.bits()) / total;
        let mut left = self.random.below(1 << 53) as f64 / (1_u64 << 53) as f64 * total;
        let chosen = moves.iter().find(|(_, rate)| {
            left -= rate;
            left < 0.0
        });
        let [queue, orbit] = chosen.map_or([0; 2], |(by, _)| *by);
        self.state =
            [self.state[0].saturating_add_signed(queue as isize), self.state[1].saturating_add_signed(orbit as isize)];
    }

    fn now(&self) -> f64 {
        self.now
    }

    fn level(&self) -> f64 {
        self.state[0] as f64
    }

    fn has_collapsed(&self) -> bool {
        self.state[0] >= COLLAPSED
    }
}

/// Returns the exact mean time to a collapse from a state: the solution of the equations of all states, whose band is as
/// wide as two rows of the orbit.
fn exact(rate: f64, from: [usize; 2]) -> f64 {
    let (row, states) = (ORBIT + 1, COLLAPSED * (ORBIT + 1));
    let band = row + 1;
    let width = 2 * band + 1;
    let (mut matrix, mut right) = (vec![0.0; states * width], vec![1.0; states]);
    for state in 0..states {
        let (queue, orbit) = (state / row, state % row);
        for ([by_queue, by_orbit], speed) in
            Chain::moves(rate, [queue, orbit]).into_iter().filter(|(_, speed)| *speed > 0.0)
        {
            matrix[state * width + band] += speed;
            let next = (queue as i32 + by_queue) * row as i32 + orbit as i32 + by_orbit;
            if (next as usize) < states {
                let column = next as usize + band - state;
                matrix[state * width + column] -= speed;
            }
        }
    }
    for pivot in 0..states {
        for below in pivot + 1..(pivot + band + 1).min(states) {
            let factor = matrix[below * width + pivot + band - below] / matrix[pivot * width + band];
            for column in pivot..(pivot + band + 1).min(states) {
                matrix[below * width + column + band - below] -= factor * matrix[pivot * width + column + band - pivot];
            }
            right[below] -= factor * right[pivot];
        }
    }
    for state in (0..states).rev() {
        let known: f64 = (state + 1..(state + band + 1).min(states))
            .map(|column| matrix[state * width + column + band - state] * right[column])
            .sum();
        right[state] = (right[state] - known) / matrix[state * width + band];
    }
    right[from[0] * row + from[1]]
}

fn estimate(rate: f64, start: [usize; 2], how: RareCollapse, seed: u64) -> CollapseTime {
    how.of(&Chain::new(rate, start), Duration::ZERO, Seed::new(seed), &Progress::new()).unwrap()
}

fn seconds(time: CollapseTime) -> f64 {
    time.mean.unwrap().as_secs_f64()
}

#[test]
fn exact_times_are_the_published_ones() {
    for (rate, least, from_empty) in [(5.0, 1.686e9, 1.687e9), (8.0, 521.3, 708.9), (9.5, 31.33, 61.17)] {
        for (start, want) in [(FULL_ORBIT, least), ([0, 0], from_empty)] {
            let got = exact(rate, start);
            assert!((got / want - 1.0).abs() < 1e-3, "{rate}/s from {start:?}: {got} s, expected {want} s");
        }
    }
    assert!((exact(7.0, FULL_ORBIT) / 1.44e4 - 1.0).abs() < 1e-2, "{}", exact(7.0, FULL_ORBIT));
}

/// Checks plain runs of 600 expected collapses: a standard error of 4 %.
#[test]
fn plain_runs_have_the_exact_times() {
    for (rate, want) in [(8.0, 521.3), (9.0, exact(9.0, FULL_ORBIT)), (9.5, 31.33)] {
        let length = Duration::from_secs_f64(60.0 * want);
        let got = seconds(estimate(rate, FULL_ORBIT, RareCollapse::new().plain(length).replications(10), 1));
        assert!((got / want - 1.0).abs() < 0.16, "{rate}/s: {got} s, expected {want} s");
    }
}

#[test]
fn splitting_has_the_exact_times_of_rare_collapses() {
    for (rate, want) in [(5.0, 1.686e9), (7.0, 1.44e4)] {
        let time = estimate(rate, FULL_ORBIT, RareCollapse::new().replications(8), 1);
        let got = seconds(time);
        assert!((0.5..2.0).contains(&(got / want)), "{rate}/s: {time}, expected {want} s");
        assert!(time.levels > 3, "{time:?}");
    }
}

/// Estimates with many seeds: the mean number of collapses per second over the exact one, its standard error, and the
/// share of the seeds whose interval contains the exact time.
fn accuracy(rate: f64, start: [usize; 2], how: RareCollapse, seeds: u64) -> (f64, f64, f64) {
    let want = exact(rate, start);
    let times: Vec<_> = (1..=seeds).map(|seed| estimate(rate, start, how, seed)).collect();
    let ratios: Vec<_> = times.iter().map(|time| want / seconds(*time)).collect();
    let mean = ratios.iter().sum::<f64>() / seeds as f64;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (seeds as f64 - 1.0);
    let covers = |time: &&CollapseTime| {
        time.low.as_secs_f64() <= want && time.high.is_none_or(|high| want <= high.as_secs_f64())
    };
    let covered = times.iter().filter(covers).count() as f64 / seeds as f64;
    (mean, (variance / seeds as f64).sqrt(), covered)
}

/// Checks that the number of collapses is unbiased, where plain runs work and where they do not, and that the interval
/// contains the exact time as often as it says.
#[test]
fn estimates_are_unbiased_and_their_intervals_contain_the_exact_time() {
    let how = RareCollapse::new().replications(8).trials(50);
    for (rate, start) in [(8.0, [0, 0]), (7.0, [0, 0])] {
        let (mean, error, covered) = accuracy(rate, start, how, 16);
        assert!((mean - 1.0).abs() <= 4.0 * error, "{rate}/s: {mean} ({error}) times the exact rate");
        assert!(error < 0.15, "{rate}/s: standard error {error}");
        // 12 of 16 or more, with a probability of 0.998 if the interval contains it with 0.93.
        assert!(covered >= 12.0 / 16.0, "{rate}/s: {covered} of the intervals contain the exact time");
    }
}

/// Measures bias and coverage with many seeds, which takes minutes: `cargo test --release -p stagger-sim --lib accuracy --
/// --ignored --nocapture`.
#[test]
#[ignore = "takes minutes; prints what docs/guide/systems.md says"]
fn accuracy_with_many_seeds() {
    for (rate, start) in [(9.5, [0, 0]), (8.0, [0, 0]), (7.0, [0, 0]), (5.0, [0, 0])] {
        for how in [RareCollapse::new(), RareCollapse::new().replications(8).trials(50)] {
            let (mean, error, covered) = accuracy(rate, start, how, 200);
            println!("{rate}/s, {how:?}: rate {mean:.3} ({error:.3}) times the exact one, {covered:.3} covered");
            assert!((mean - 1.0).abs() <= 4.0 * error, "{rate}/s: {mean} ({error}) times the exact rate");
        }
    }
}
