use std::collections::VecDeque;

use super::OutageKind;

/// A server with one queue that processes one job after the other. Times are in microseconds.
pub(super) struct Server {
    service: f64,
    room: usize,
    outage: OutageKind,
    from: f64,
    until: f64,
    /// Completion time of each job in the system.
    done: VecDeque<f64>,
}

/// The outcome of an attempt that has arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum JobOutcome {
    /// The job completes at this time.
    Done(f64),
    /// The queue is full.
    QueueFull,
    /// The server is down and rejects the attempt.
    Down,
}

impl Server {
    pub(super) fn new(rate: f64, room: u32, outage: OutageKind, from: u64, until: u64) -> Self {
        let (from, until) = (from as f64, until as f64);
        Self { service: 1e6 / rate, room: room as usize, outage, from, until, done: VecDeque::new() }
    }

    pub(super) fn arrive(&mut self, at: u64) -> JobOutcome {
        let at = at as f64;
        let is_out = at >= self.from && at < self.until;
        if is_out && self.outage == OutageKind::Reject {
            return JobOutcome::Down;
        }
        while self.done.front().is_some_and(|&done| done <= at) {
            self.done.pop_front();
        }
        if self.done.len() >= self.room {
            return JobOutcome::QueueFull;
        }
        let start = self.done.back().map_or(at, |&last| last.max(at));
        let done = if self.outage == OutageKind::Stall { self.done_after_stall(start) } else { start + self.service };
        self.done.push_back(done);
        JobOutcome::Done(done)
    }

    /// Returns the completion time of a job that would start at `start`, taking the stall into account.
    fn done_after_stall(&self, start: f64) -> f64 {
        if start >= self.from && start < self.until {
            return self.until + self.service;
        }
        let done = start + self.service;
        if start < self.from && done > self.from { done + (self.until - self.from) } else { done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the outcomes with a thousand jobs per second and an outage from 10 to 20 ms.
    fn fates(outage: OutageKind, room: u32, arrivals: &[u64]) -> Vec<JobOutcome> {
        let mut server = Server::new(1_000.0, room, outage, 10_000, 20_000);
        arrivals.iter().map(|&at| server.arrive(at)).collect()
    }

    #[test]
    fn jobs_are_processed_sequentially() {
        let got = fates(OutageKind::Stall, 2, &[0, 0, 0, 1_000, 5_000]);
        assert_eq!(
            got,
            [
                JobOutcome::Done(1e3),
                JobOutcome::Done(2e3),
                JobOutcome::QueueFull,
                JobOutcome::Done(3e3),
                JobOutcome::Done(6e3)
            ]
        );
    }

    #[test]
    fn during_a_stall_no_job_starts_and_the_current_job_pauses() {
        let got = fates(OutageKind::Stall, 9, &[9_500, 9_600, 15_000, 30_000]);
        assert_eq!(
            got,
            [
                JobOutcome::Done(20_500.0),
                JobOutcome::Done(21_500.0),
                JobOutcome::Done(22_500.0),
                JobOutcome::Done(31_000.0)
            ]
        );
        assert_eq!(fates(OutageKind::Stall, 9, &[10_000]), [JobOutcome::Done(21_000.0)]);
    }

    #[test]
    fn a_rejecting_server_processes_its_queue() {
        let got = fates(OutageKind::Reject, 9, &[9_500, 9_600, 10_000, 19_999, 20_000]);
        assert_eq!(
            got,
            [
                JobOutcome::Done(10_500.0),
                JobOutcome::Done(11_500.0),
                JobOutcome::Down,
                JobOutcome::Down,
                JobOutcome::Done(21_000.0)
            ]
        );
    }
}
