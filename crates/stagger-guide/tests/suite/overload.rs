//! A model of an open workload and a server that stalls for two seconds.
//!
//! 700 requests per second arrive at random at a server that processes 1,000 per second in order and queues up to 3,000. A client
//! times out after one second and retries; the server does not notice and still processes the abandoned request. From second
//! 20 to second 22, the server is stalled. Each message takes 5 ms.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use stagger::{Budget, FailureKind, Instant, Outcome, Policy, Seed, guard::BudgetPermit, schedule::Delays};

use super::fleet::{Numbers, Seconds};

const REQUESTS_PER_SECOND: f64 = 700.0;
const SERVED_PER_SECOND: f64 = 1000.0;
const QUEUE: usize = 3000;
const PATIENCE: f64 = 1.0;
const TRIP: f64 = 0.005;
const STALL: (f64, f64) = (20.0, 22.0);
/// Time of the last request, in seconds.
const END: f64 = 120.0;

/// The results of the requests.
#[derive(Debug)]
pub(super) struct Aftermath {
    /// Attempts per request, from the stall on.
    pub(super) amplification: f64,
    /// Share of requests that were answered in time, from the stall on.
    pub(super) answered: f64,
}

#[derive(Default)]
struct Server {
    /// Completion time of each job in the queue.
    done: VecDeque<f64>,
    free: f64,
}

impl Server {
    /// Enqueues a job that arrives now; returns its completion time, or `None` if the queue is full.
    fn enqueue(&mut self, now: f64) -> Option<f64> {
        while self.done.front().is_some_and(|&done| done <= now) {
            self.done.pop_front();
        }
        if self.done.len() >= QUEUE {
            return None;
        }
        let begun = self.free.max(now);
        let begun = if (STALL.0..STALL.1).contains(&begun) { STALL.1 } else { begun };
        self.free = begun + 1.0 / SERVED_PER_SECOND;
        self.done.push_back(self.free);
        Some(self.free)
    }
}

/// An event of a request. Events at the same time happen in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Sent,
    SentAgain,
    Answered,
    Failed,
}

struct Request<'p> {
    born: f64,
    delays: Delays<'p>,
    /// The budget permit of the current attempt.
    permit: BudgetPermit,
}

/// Runs the model. All clients use this policy, and share the budget if there is one.
pub(super) fn run(policy: &Policy, budget: Option<&dyn Budget>) -> Aftermath {
    let mut numbers = Numbers::new(Seed::new(1));
    let mut events = BinaryHeap::new();
    let mut requests = Vec::new();
    let mut born = 0.0;
    while born < END {
        events.push(Reverse((Seconds(born), Event::Sent, requests.len())));
        let delays = policy.delays(Seed::new(2).for_call(requests.len() as u64));
        requests.push(Request { born, delays, permit: BudgetPermit::NONE });
        born -= (1.0 - numbers.next()).ln() / REQUESTS_PER_SECOND;
    }

    let mut server = Server::default();
    let counts = |born: f64| (STALL.0..END - 20.0).contains(&born);
    let (mut made, mut answered) = (0_u32, 0_u32);
    while let Some(Reverse((Seconds(now), event, id))) = events.pop() {
        let Request { born, delays, permit } = &mut requests[id];
        let instant = Instant::from_nanos((now * 1e9) as u64);
        if let Event::Sent | Event::SentAgain = event {
            made += u32::from(counts(*born));
            if let (Some(budget), Event::Sent) = (budget, event) {
                *permit = budget.on_first_attempt(&instant);
            }
            let (ends, end) = match server.enqueue(now + TRIP) {
                Some(done) if done + TRIP <= now + PATIENCE => (done + TRIP, Event::Answered),
                Some(_) => (now + PATIENCE, Event::Failed),
                None => (now + 2.0 * TRIP, Event::Failed),
            };
            events.push(Reverse((Seconds(ends), end, id)));
            continue;
        }
        let outcome = if event == Event::Answered { Outcome::Success } else { Outcome::TRANSIENT };
        if let Some(budget) = budget {
            budget.record(core::mem::replace(permit, BudgetPermit::NONE), &outcome, &instant);
        }
        if event == Event::Answered {
            answered += u32::from(counts(*born));
            continue;
        }
        let Some(delay) = delays.next() else { continue };
        if let Some(budget) = budget {
            let Some(granted) = budget.try_acquire(FailureKind::Transient, &instant) else { continue };
            *permit = granted;
        }
        events.push(Reverse((Seconds(now + delay.as_secs_f64()), Event::SentAgain, id)));
    }
    let requests = requests.iter().filter(|request| counts(request.born)).count() as f64;
    Aftermath { amplification: f64::from(made) / requests, answered: f64::from(answered) / requests }
}

/// Compares with an independent implementation of the model: 0.959 without retries, and 0.000 with three of them.
#[test]
fn the_model_agrees_with_an_independent_one() {
    let none = run(&Policy::stop().build().unwrap(), None);
    assert!((none.answered - 0.959).abs() < 0.01, "{none:?}");
    let three = run(&"exponential base=100ms cap=2s jitter=full max-attempts=4".parse().unwrap(), None);
    assert!(three.answered < 0.001 && three.amplification > 3.9, "{three:?}");
}
