//! Time per operation, with all cases taking turns.
//!
//! One case measured to its end before the next begins would compare the machine's moods: frequency,
//! temperature and neighbours drift by more than the cases differ. So a round runs every case once, and
//! a case's figure is the fastest of its rounds, the one least disturbed.
//!
//! Turns of a million operations take their time by the processor's account, and not by the clock.
//!
//! With two threads only those turns count in which both were running nearly all the time: a thread that waits for a
//! processor leaves the other one alone with what they are to share.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::time::Instant;
use std::{fs, thread};

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
    const fn rounds(self, turns: Turns) -> usize {
        match (self, turns) {
            (Self::Quick, Turns::Whole(_)) => 2,
            (Self::Thorough, Turns::Whole(_)) | (Self::Quick, _) => 7,
            (Self::Thorough, _) => 51,
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

/// How a case takes its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    /// For a few milliseconds.
    Short,
    /// On two threads at the same time, both on the same object.
    Together,
    /// So many operations: for what does some of its work once in many of them, so that the fastest of short turns would
    /// be one without.
    Whole(u64),
}

/// How long one of two threads would take alone. A busy machine leaves both alone for as long, now and then.
const TOGETHER: Duration = Duration::from_micros(50);

/// How often two threads are started until they run at the same time.
const TRIES: usize = 20;

/// Nanoseconds per operation.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct Timing {
    /// Of the fastest round.
    pub(crate) fastest_ns: f64,
    /// Of the round in the middle: far above the fastest, the machine was busy.
    pub(crate) median_ns: f64,
}

/// Times each of `cases`, in turns; `None` if no turn of it counted.
pub(crate) fn measure(cases: &[fn(u64)], turns: Turns, effort: Effort) -> Vec<Option<Timing>> {
    let filling = |turn| cases.iter().map(|run| calibrate(turn, |iterations| time(*run, iterations))).collect();
    let lengths: Vec<u64> = match turns {
        Turns::Short => filling(effort.turn()),
        Turns::Together => filling(TOGETHER),
        Turns::Whole(iterations) => {
            // What was made in order lies in order, and is found sooner than it ever is again.
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
                Turns::Whole(_) => Some(time_on_processor(*run, *iterations)),
                Turns::Together => (0..TRIES).find_map(|_| time_two(*run, *iterations)),
            };
            samples.extend(taken.map(|taken| taken.as_nanos() as f64 / *iterations as f64));
        }
    }
    samples.into_iter().map(summarise).collect()
}

/// How many iterations fill one turn; doing so warms the case up as well.
fn calibrate(turn: Duration, time: impl Fn(u64) -> Duration) -> u64 {
    let mut iterations = UNIT;
    loop {
        let taken = time(iterations);
        if taken >= turn {
            return iterations;
        }
        // At most eightfold at a time: the first runs are slow and mislead.
        let wanted = turn.as_nanos() as u64 / (taken.as_nanos() as u64 + 1) + 1;
        iterations *= wanted.clamp(2, 8);
    }
}

fn time(run: fn(u64), iterations: u64) -> Duration {
    let start = Instant::now();
    run(iterations);
    start.elapsed()
}

/// Without the time for which others had the processor, where the system tells it: a long turn is never left alone.
fn time_on_processor(run: fn(u64), iterations: u64) -> Duration {
    let before = processor_time();
    let taken = time(run, iterations);
    before.zip(processor_time()).map_or(taken, |(before, after)| after.saturating_sub(before))
}

/// For how long this thread has had a processor; to a few milliseconds.
fn processor_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// From the first start to the last end; `None` if the two were not at it together.
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

fn summarise(mut samples: Vec<f64>) -> Option<Timing> {
    samples.sort_by(f64::total_cmp);
    let median_ns = *samples.get(samples.len() / 2)?;
    Some(Timing { fastest_ns: *samples.first()?, median_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_and_the_middle_round_are_reported() {
        let timing = summarise(vec![5.0, 1.0, 9.0, 3.0, 7.0]);
        assert_eq!(timing, Some(Timing { fastest_ns: 1.0, median_ns: 5.0 }));
        assert_eq!(summarise(Vec::new()), None);
    }

    #[test]
    fn two_threads_count_only_if_they_ran_together() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(overlapping((at(0), at(98)), (at(2), at(100))), Some(Duration::from_millis(100)));
        assert_eq!(overlapping((at(0), at(50)), (at(1), at(100))), None);
        assert_eq!(overlapping((at(0), at(50)), (at(60), at(100))), None);
    }

    #[test]
    fn a_turn_is_filled_with_whole_sessions() {
        let iterations = calibrate(Duration::from_micros(500), Duration::from_micros);
        assert_eq!(iterations % UNIT, 0);
        assert!((500..4_000).contains(&iterations), "{iterations} µs for a turn of 500 µs");
    }
}
