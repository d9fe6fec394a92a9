//! How busy the clients' processes are, which may make them later than their policy says.

use core::time::Duration;
use std::fs;
use std::time::Instant;

use stagger_terminal::plot::Unit;

use crate::machine::{CpuTicks, LATE_S, ProcessTicks, SATURATED, TICKS_PER_SECOND};

/// The load of the machine and of the clients' processes during the storm, sampled at each tick.
#[derive(Debug, Default)]
pub(super) struct ClientLoad {
    machine: Vec<CpuTicks>,
    processes: Vec<ProcessLoad>,
}

#[derive(Debug, Default)]
struct ProcessLoad {
    ticks: Vec<ProcessTicks>,
    main_thread: Vec<ThreadTime>,
}

/// How long a thread has had work.
#[derive(Clone, Copy, Debug)]
struct ThreadTime {
    at: Instant,
    /// Time on a processor, and time in which it waited for one.
    busy: Duration,
}

/// Share of the time between two samples beyond which a thread has had no pause.
const BUSY: f64 = 0.9;

impl ClientLoad {
    pub(super) fn sample(&mut self, processes: &[Option<u32>]) {
        let machine = CpuTicks::read();
        self.machine.extend(machine);
        self.processes.resize_with(processes.len(), ProcessLoad::default);
        for (load, process) in self.processes.iter_mut().zip(processes) {
            let Some(process) = *process else { continue };
            load.ticks.extend(ProcessTicks::read(process, machine));
            load.main_thread.extend(ThreadTime::read(process));
        }
    }

    /// Returns the share of all processors that was used in the busiest second.
    pub(super) fn peak_cpu_ratio(&self) -> Option<f64> {
        CpuTicks::busiest(&self.machine, TICKS_PER_SECOND)
    }

    /// Returns why the clients' processes may have been late, with what to do.
    pub(super) fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let longest = self.processes.iter().map(|load| longest_without_pause(&load.main_thread)).max();
        if let Some(longest) = longest
            && longest.as_secs_f64() >= LATE_S
        {
            let longest = Unit::Seconds.label((longest.as_secs_f64() * 10.0).round() / 10.0);
            doubts.push(format!(
                "a process of the clients worked for {longest} without a pause, so that attempts that were due came \
                 later and together (lower --clients, raise --processes if processors are idle, or use a runtime that \
                 opens connections faster)"
            ));
        }
        let shares = self.processes.iter().filter_map(|load| ProcessTicks::busiest(&load.ticks, TICKS_PER_SECOND));
        if let Some(share) = shares.reduce(f64::max)
            && share > SATURATED
        {
            doubts.push(format!(
                "a process of the clients used {:.0}% of a processor in one second (lower --clients, or raise \
                 --processes)",
                100.0 * share
            ));
        }
        doubts
    }
}

impl ThreadTime {
    /// Reads the times of the main thread of a process, in which JavaScript runs; `None` on systems other than Linux.
    fn read(process: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        Some(Self { at: Instant::now(), busy: Self::busy(&text)? })
    }

    /// Returns the sum of the first two numbers, which are nanoseconds on a processor and in its queue.
    fn busy(schedstat: &str) -> Option<Duration> {
        let mut numbers = schedstat.split_ascii_whitespace().map(|number| number.parse::<u64>().ok());
        Some(Duration::from_nanos(numbers.next()??.saturating_add(numbers.next()??)))
    }
}

/// Returns the longest time between samples in which a thread has had work nearly all the time.
fn longest_without_pause(samples: &[ThreadTime]) -> Duration {
    let (mut longest, mut stretch) = (Duration::ZERO, Duration::ZERO);
    for pair in samples.windows(2) {
        let (elapsed, busy) =
            (pair[1].at.saturating_duration_since(pair[0].at), pair[1].busy.saturating_sub(pair[0].busy));
        stretch = if busy >= elapsed.mul_f64(BUSY) { stretch + elapsed } else { Duration::ZERO };
        longest = longest.max(stretch);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stretches_of_work_without_a_pause_add_up() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let samples = [(0, 0), (100, 50), (200, 145), (310, 250), (410, 330), (510, 425)]
            .map(|(at, busy)| ThreadTime { at: start + ms(at), busy: ms(busy) });
        assert_eq!(longest_without_pause(&samples), ms(210), "from 100 to 310 ms");
        assert_eq!(longest_without_pause(&samples[..2]), Duration::ZERO);
        assert_eq!(longest_without_pause(&[]), Duration::ZERO);
    }

    #[test]
    fn time_on_a_processor_and_in_its_queue_is_time_with_work() {
        assert_eq!(ThreadTime::busy("929771 70229 2\n"), Some(Duration::from_millis(1)));
        assert_eq!(["", "12", "a b c"].map(ThreadTime::busy), [None; 3]);
    }

    #[test]
    fn a_process_that_works_without_a_pause_for_100_ms_is_a_doubt_with_a_remedy() {
        let doubts = |busy: u64| {
            let start = Instant::now();
            let sample =
                |at, busy| ThreadTime { at: start + Duration::from_millis(at), busy: Duration::from_millis(busy) };
            let main_thread = vec![sample(0, 0), sample(100, busy), sample(200, busy)];
            ClientLoad { machine: Vec::new(), processes: vec![ProcessLoad { ticks: Vec::new(), main_thread }] }.doubts()
        };
        assert_eq!(doubts(80), [""; 0]);
        let doubts = doubts(95);
        assert!(
            doubts.len() == 1 && doubts[0].contains("worked for 100ms") && doubts[0].contains("--processes"),
            "{doubts:?}"
        );
    }
}
