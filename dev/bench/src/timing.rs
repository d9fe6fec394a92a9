//! Time per operation, with all cases taking turns.
//!
//! If each case were measured to completion before the next, the comparison would include drift of the machine:
//! frequency, temperature and other load change by more than the cases differ. So each round runs every case once, and
//! the figure of a case is its fastest round, which was disturbed least.
//!
//! Turns of a million operations are measured in CPU time instead of wall-clock time.
//!
//! With two threads, only turns count in which both threads ran nearly all the time: while one waits for a processor,
//! the other has the shared object to itself.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::time::Instant;
use std::{fs, thread};

/// The number of iterations is a multiple of this, so that sessions of eight are complete.
const UNIT: u64 = 8;

/// How long a run measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Seconds in total.
    Quick,
    /// Minutes in total.
    Thorough,
}

impl Effort {
    const fn rounds(self, turns: Turns) -> usize {
        match (self, turns) {
            (Self::Quick, Turns::Fixed(_)) => 2,
            (Self::Thorough, Turns::Fixed(_)) | (Self::Quick, _) => 7,
            (Self::Thorough, _) => 51,
        }
    }

    /// Returns the minimum duration of a case in one round.
    const fn min_turn(self) -> Duration {
        match self {
            Self::Quick => Duration::from_micros(500),
            Self::Thorough => Duration::from_millis(4),
        }
    }
}

/// How a case runs within a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Runs for a few milliseconds.
    Short,
    /// Runs on two threads at the same time, both on the same object.
    TwoThreads,
    /// Runs a fixed number of operations: for cases that do part of their work only once in many operations, which the
    /// fastest of many short turns would not include.
    Fixed(u64),
}

/// Duration of a turn with two threads. Short enough that even a busy machine sometimes runs both without interruption.
const TWO_THREADS_TURN: Duration = Duration::from_micros(50);

/// Number of attempts to make two threads run at the same time.
const TRIES: usize = 20;

/// Nanoseconds per operation.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct Timing {
    /// Time of the fastest round.
    pub(crate) fastest_ns: f64,
    /// Time of the median round. If it is far above the fastest, the machine was busy.
    pub(crate) median_ns: f64,
}

/// Times each of `cases`, in turns. The result of a case is `None` if none of its turns counted.
pub(crate) fn measure(cases: &[fn(u64)], turns: Turns, effort: Effort) -> Vec<Option<Timing>> {
    let filling = |turn| cases.iter().map(|run| calibrate(turn, |iterations| time(*run, iterations))).collect();
    let lengths: Vec<u64> = match turns {
        Turns::Short => filling(effort.min_turn()),
        Turns::TwoThreads => filling(TWO_THREADS_TURN),
        Turns::Fixed(iterations) => {
            // Entries that were just created in order are also in order in memory. Runs until that order is gone, since
            // it makes the first operations faster than later ones.
            cases.iter().for_each(|run| run(2 * iterations));
            vec![iterations; cases.len()]
        }
    };
    let rounds = effort.rounds(turns);
    let mut samples = vec![Vec::with_capacity(rounds); cases.len()];
    for _ in 0..rounds {
        for ((run, iterations), samples) in cases.iter().zip(&lengths).zip(&mut samples) {
            let taken = match turns {
                Turns::Short => Some(time(*run, *iterations)),
                Turns::Fixed(_) => Some(time_on_processor(*run, *iterations)),
                Turns::TwoThreads => (0..TRIES).find_map(|_| time_two(*run, *iterations)),
            };
            samples.extend(taken.map(|taken| taken.as_nanos() as f64 / *iterations as f64));
        }
    }
    samples.into_iter().map(summarize).collect()
}

/// Returns the number of iterations that fill one turn, and warms the case up in doing so.
fn calibrate(turn: Duration, time: impl Fn(u64) -> Duration) -> u64 {
    let mut iterations = UNIT;
    // The first run also creates what all runs share, which may take longer than a turn.
    let _ = time(iterations);
    loop {
        let taken = time(iterations);
        if taken >= turn {
            return iterations;
        }
        // At most eightfold at a time, because the first runs are slow.
        let wanted = turn.as_nanos() as u64 / (taken.as_nanos() as u64 + 1) + 1;
        iterations *= wanted.clamp(2, 8);
    }
}

fn time(run: fn(u64), iterations: u64) -> Duration {
    let start = Instant::now();
    run(iterations);
    start.elapsed()
}

/// Returns the CPU time of a run if the system reports it, else its wall-clock time. A long turn is always interrupted
/// by other load.
fn time_on_processor(run: fn(u64), iterations: u64) -> Duration {
    let before = processor_time();
    let taken = time(run, iterations);
    before.zip(processor_time()).map_or(taken, |(before, after)| after.saturating_sub(before))
}

/// Returns the CPU time of this thread, to a few milliseconds.
fn processor_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Runs a case on two threads; returns the time from the first start to the last end, or `None` if the two did not run
/// at the same time.
fn time_two(run: fn(u64), iterations: u64) -> Option<Duration> {
    let ready = AtomicU32::new(0);
    let turn = || {
        ready.fetch_add(1, Ordering::Relaxed);
        while ready.load(Ordering::Relaxed) < 2 {
            spin_loop();
        }
        let start = Instant::now();
        run(iterations);
        (start, Instant::now())
    };
    let (one, other) = thread::scope(|scope| {
        let (one, other) = (scope.spawn(turn), scope.spawn(turn));
        Some((one.join().ok()?, other.join().ok()?))
    })?;
    overlapping(one, other)
}

fn overlapping(one: (Instant, Instant), other: (Instant, Instant)) -> Option<Duration> {
    let all = one.1.max(other.1) - one.0.min(other.0);
    let together = one.1.min(other.1).saturating_duration_since(one.0.max(other.0));
    (together * 10 >= all * 9).then_some(all)
}

fn summarize(mut samples: Vec<f64>) -> Option<Timing> {
    samples.sort_by(f64::total_cmp);
    let median_ns = *samples.get(samples.len() / 2)?;
    Some(Timing { fastest_ns: *samples.first()?, median_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_and_the_median_round_are_reported() {
        let timing = summarize(vec![5.0, 1.0, 9.0, 3.0, 7.0]);
        assert_eq!(timing, Some(Timing { fastest_ns: 1.0, median_ns: 5.0 }));
        assert_eq!(summarize(Vec::new()), None);
    }

    #[test]
    fn turns_with_two_threads_count_only_if_they_overlap() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(overlapping((at(0), at(98)), (at(2), at(100))), Some(Duration::from_millis(100)));
        assert_eq!(overlapping((at(0), at(50)), (at(1), at(100))), None);
        assert_eq!(overlapping((at(0), at(50)), (at(60), at(100))), None);
    }

    #[test]
    fn what_only_the_first_run_creates_does_not_count_towards_a_turn() {
        let runs = core::cell::Cell::new(0);
        let iterations = calibrate(Duration::from_micros(500), |iterations| {
            runs.set(runs.get() + 1);
            Duration::from_micros(if runs.get() == 1 { 30_000 } else { iterations })
        });
        assert!(iterations >= 500, "{iterations}");
    }

    #[test]
    fn a_turn_consists_of_complete_sessions() {
        let iterations = calibrate(Duration::from_micros(500), Duration::from_micros);
        assert_eq!(iterations % UNIT, 0);
        assert!((500..4_000).contains(&iterations), "{iterations} µs for a turn of 500 µs");
    }
}
