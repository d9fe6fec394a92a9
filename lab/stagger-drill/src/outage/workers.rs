use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, oneshot};

/// The fault of the server, as the simulator has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) start: Instant,
    pub(super) end: Instant,
    /// The factor of the service time of what is begun during the fault; `None` for a stall.
    pub(super) slow: Option<f64>,
}

impl Fault {
    /// Returns when work ends that is begun at `begin` and takes `service` without a fault. A stall interrupts what was begun
    /// before it.
    pub(super) fn end_of(&self, begin: Instant, service: Duration) -> Instant {
        let is_inside = begin >= self.start && begin < self.end;
        match self.slow {
            Some(factor) if is_inside => begin + service.mul_f64(factor),
            None if is_inside => self.end + service,
            None if begin < self.start && begin + service > self.start => begin + service + (self.end - self.start),
            _ => begin + service,
        }
    }
}

/// What the server counts, from the start of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct WorkCounts {
    /// Attempts that a worker finished.
    pub(super) completed: u64,
    /// How many of these had a caller that still waited.
    pub(super) answered: u64,
    /// Attempts that found the backlog full.
    pub(super) refused: u64,
    /// Largest number of attempts at the server, waiting or in service.
    pub(super) peak: u32,
    /// Maximum delay of a timer of the server.
    pub(super) max_timer_delay_s: f64,
}

/// Workers with one queue, first in, first out.
#[derive(Debug)]
pub(super) struct Workers {
    service: Duration,
    backlog: u32,
    /// Set when the load begins; until then there is neither a fault nor a count.
    fault: OnceLock<Fault>,
    /// A permit for each attempt in the queue.
    waiting: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Job>,
    at_server: u32,
    counts: WorkCounts,
}

#[derive(Debug)]
struct Job {
    arrived: Instant,
    done: oneshot::Sender<()>,
}

impl Workers {
    /// Starts `workers` tasks on the current runtime.
    pub(super) fn start(workers: u32, service: Duration, backlog: u32) -> Arc<Self> {
        let fault = OnceLock::new();
        let all = Arc::new(Self { service, backlog, fault, waiting: Semaphore::new(0), state: Mutex::default() });
        for _ in 0..workers {
            tokio::spawn(Arc::clone(&all).work());
        }
        all
    }

    /// Sets the fault and begins to count.
    pub(super) fn begin(&self, fault: Fault) {
        let _ = self.fault.set(fault);
        self.with(|state| state.counts = WorkCounts::default());
    }

    /// Takes an attempt in; returns what ends when a worker is done with it, or `None` if the backlog is full.
    pub(super) fn offer(&self) -> Option<oneshot::Receiver<()>> {
        let (done, answer) = oneshot::channel();
        self.with(|state| {
            if state.at_server >= self.backlog {
                state.counts.refused += 1;
                return None;
            }
            state.at_server += 1;
            state.counts.peak = state.counts.peak.max(state.at_server);
            state.queue.push_back(Job { arrived: Instant::now(), done });
            Some(())
        })?;
        self.waiting.add_permits(1);
        Some(answer)
    }

    pub(super) fn counts(&self) -> WorkCounts {
        self.with(|state| state.counts.clone())
    }

    /// Works off the queue. A worker that is busy begins its next work when its last one should have ended, and not when its
    /// timer fired, so late timers do not lower the capacity.
    async fn work(self: Arc<Self>) {
        let mut free_at = Instant::now();
        while let Ok(permit) = self.waiting.acquire().await {
            permit.forget();
            let Some(job) = self.with(|state| state.queue.pop_front()) else { continue };
            let begin = free_at.max(job.arrived);
            let end = self.fault.get().map_or(begin + self.service, |fault| fault.end_of(begin, self.service));
            tokio::time::sleep_until(end.into()).await;
            let late = end.elapsed().as_secs_f64();
            let is_answered = job.done.send(()).is_ok();
            self.with(|state| {
                state.at_server -= 1;
                state.counts.completed += 1;
                state.counts.answered += u64::from(is_answered);
                state.counts.max_timer_delay_s = state.counts.max_timer_delay_s.max(late);
            });
            free_at = end;
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_stall_interrupts_work_and_a_slow_server_takes_longer_for_what_it_begins() {
        let zero = Instant::now();
        let fault = |slow| Fault { start: zero + 100 * MS, end: zero + 200 * MS, slow };
        for (slow, begin, want) in [
            (None, 50, 70),
            (None, 90, 210),
            (None, 100, 220),
            (None, 199, 220),
            (None, 200, 220),
            (Some(3.0), 90, 110),
            (Some(3.0), 100, 160),
            (Some(3.0), 199, 259),
            (Some(3.0), 200, 220),
        ] {
            let end = fault(slow).end_of(zero + begin * MS, 20 * MS);
            assert_eq!(end, zero + want * MS, "{slow:?} from {begin}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_beyond_the_backlog_are_refused_and_the_rest_is_worked_off_by_all_workers() {
        let workers = Workers::start(2, 20 * MS, 3);
        let answers: Vec<_> = (0..4).map(|_| workers.offer()).collect();
        assert_eq!(answers.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, false]);
        for answer in answers.into_iter().flatten() {
            answer.await.expect("the workers run");
        }
        let counts = workers.counts();
        assert_eq!((counts.completed, counts.answered, counts.refused, counts.peak), (3, 3, 1, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_finished_although_its_caller_has_gone() {
        let workers = Workers::start(1, 20 * MS, 3);
        drop(workers.offer());
        workers.offer().expect("room").await.expect("the worker runs");
        let counts = workers.counts();
        assert_eq!((counts.completed, counts.answered), (2, 1));
    }
}
