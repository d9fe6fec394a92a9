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

/// Why an attempt that has arrived is not processed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rejection {
    QueueFull,
    Throttled,
    Down,
}

impl Server {
    pub(super) fn new(rate: f64, room: u32, outage: OutageKind, from: u64, until: u64) -> Self {
        let (from, until) = (from as f64, until as f64);
        Self { service: 1e6 / rate, room: room as usize, outage, from, until, done: VecDeque::new() }
    }

    /// Returns the time at which the job of this attempt is complete.
    pub(super) fn arrive(&mut self, at: u64) -> Result<f64, Rejection> {
        let at = at as f64;
        let is_out = at >= self.from && at < self.until;
        match self.outage {
            OutageKind::Reject if is_out => return Err(Rejection::Down),
            OutageKind::Throttle if is_out => return Err(Rejection::Throttled),
            _ => {}
        }
        while self.done.front().is_some_and(|&done| done <= at) {
            self.done.pop_front();
        }
        if self.done.len() >= self.room {
            return Err(Rejection::QueueFull);
        }
        let start = self.done.back().map_or(at, |&last| last.max(at));
        let done = if self.outage == OutageKind::Stall { self.done_after_stall(start) } else { start + self.service };
        self.done.push_back(done);
        Ok(done)
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

    #[test]
    fn jobs_are_sequential_and_wait_for_the_end_of_a_stall() {
        let (full, down) = (Err(Rejection::QueueFull), Err(Rejection::Down));
        let [stall, reject, throttle] = [OutageKind::Stall, OutageKind::Reject, OutageKind::Throttle];
        // A thousand jobs per second, and an outage from 10 to 20 ms.
        for (claim, outage, room, arrivals, want) in [
            (
                "jobs are processed sequentially",
                stall,
                2,
                &[0, 0, 0, 1_000, 5_000][..],
                &[Ok(1e3), Ok(2e3), full, Ok(3e3), Ok(6e3)][..],
            ),
            (
                "during a stall the current job pauses, and no job starts",
                stall,
                9,
                &[9_500, 9_600, 15_000, 30_000],
                &[Ok(20_500.0), Ok(21_500.0), Ok(22_500.0), Ok(31_000.0)],
            ),
            ("a job that would start with the stall starts after it", stall, 9, &[10_000], &[Ok(21_000.0)]),
            (
                "a rejecting server processes its queue",
                reject,
                9,
                &[9_500, 9_600, 10_000, 19_999, 20_000],
                &[Ok(10_500.0), Ok(11_500.0), down, down, Ok(21_000.0)],
            ),
            (
                "a server that throttles processes its queue",
                throttle,
                9,
                &[9_500, 10_000, 20_000],
                &[Ok(10_500.0), Err(Rejection::Throttled), Ok(21_000.0)],
            ),
        ] {
            let mut server = Server::new(1_000.0, room, outage, 10_000, 20_000);
            let got: Vec<_> = arrivals.iter().map(|&at| server.arrive(at)).collect();
            assert_eq!(got, want, "{claim}");
        }
    }
}
