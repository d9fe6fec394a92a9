//! Time per operation, with all cases taking turns.
//!
//! One case measured to its end before the next begins would compare the machine's moods: frequency,
//! temperature and neighbours drift by more than the cases differ. So a round runs every case once, and
//! a case's figure is the fastest of its rounds, the one least disturbed.

use core::time::Duration;
use std::time::Instant;

/// Iterations are a multiple of this, so that sessions of eight come out whole.
const UNIT: u64 = 8;

/// How long to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Seconds in all.
    Quick,
    /// Minutes in all.
    Thorough,
}

impl Effort {
    const fn rounds(self) -> usize {
        match self {
            Self::Quick => 7,
            Self::Thorough => 51,
        }
    }

    /// How long a case runs in one round, at least.
    const fn turn(self) -> Duration {
        match self {
            Self::Quick => Duration::from_micros(500),
            Self::Thorough => Duration::from_millis(4),
        }
    }
}

/// Nanoseconds per operation.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct Timing {
    /// Of the fastest round.
    pub(crate) fastest_ns: f64,
    /// Of the round in the middle: far above the fastest, the machine was busy.
    pub(crate) median_ns: f64,
}

/// Times each of `cases`, in turns.
pub(crate) fn measure(cases: &[fn(u64)], effort: Effort) -> Vec<Timing> {
    let turns: Vec<u64> = cases.iter().map(|run| calibrate(effort, |iterations| time(*run, iterations))).collect();
    let mut samples = vec![Vec::with_capacity(effort.rounds()); cases.len()];
    for _ in 0..effort.rounds() {
        for ((run, iterations), samples) in cases.iter().zip(&turns).zip(&mut samples) {
            samples.push(time(*run, *iterations).as_nanos() as f64 / *iterations as f64);
        }
    }
    samples.into_iter().map(summarise).collect()
}

/// How many iterations fill one turn; doing so warms the case up as well.
fn calibrate(effort: Effort, time: impl Fn(u64) -> Duration) -> u64 {
    let mut iterations = UNIT;
    loop {
        let taken = time(iterations);
        if taken >= effort.turn() {
            return iterations;
        }
        // At most eightfold at a time: the first runs are slow and mislead.
        let wanted = effort.turn().as_nanos() as u64 / (taken.as_nanos() as u64 + 1) + 1;
        iterations *= wanted.clamp(2, 8);
    }
}

fn time(run: fn(u64), iterations: u64) -> Duration {
    let start = Instant::now();
    run(iterations);
    start.elapsed()
}

fn summarise(mut samples: Vec<f64>) -> Timing {
    samples.sort_by(f64::total_cmp);
    Timing {
        fastest_ns: samples.first().copied().unwrap_or(f64::NAN),
        median_ns: samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_and_the_middle_round_are_reported() {
        let timing = summarise(vec![5.0, 1.0, 9.0, 3.0, 7.0]);
        assert_eq!((timing.fastest_ns, timing.median_ns), (1.0, 5.0));
    }

    #[test]
    fn a_turn_is_filled_with_whole_sessions() {
        let iterations = calibrate(Effort::Quick, Duration::from_micros);
        assert_eq!(iterations % UNIT, 0);
        assert!((500..4_000).contains(&iterations), "{iterations} µs for a turn of 500 µs");
    }
}
