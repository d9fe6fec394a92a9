//! Requests that keep coming, whatever becomes of the ones before, and a server that stands still for two seconds.
//!
//! 700 requests a second arrive at random at a server that can do 1,000, in order, and keeps up to 3,000 waiting. A
//! client waits one second for its answer and then retries; the server does not notice, and does the work all the same.
//! From second 20 to second 22 the server does nothing. Each message takes 5 ms.

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
/// When the last request is made.
const END: f64 = 120.0;

/// What became of the requests.
#[derive(Debug)]
pub(super) struct Aftermath {
    /// Attempts per request, from the stall on.
    pub(super) amplification: f64,
    /// The share of requests that were answered in time, from the stall on.
    pub(super) answered: f64,
}

#[derive(Default)]
struct Server {
    /// When each job in the queue is done.
    done: VecDeque<f64>,
    free: f64,
}

impl Server {
    /// When the job that arrives now is done; `None` if it is turned away.
    fn take(&mut self, now: f64) -> Option<f64> {
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

/// What happens to a request, in the order in which it does if it happens at the same time.
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
    /// What was lent for its present attempt.
    loan: BudgetPermit,
}

/// All clients retry by this policy, and share a budget if there is one.
pub(super) fn stalls(policy: &Policy, budget: Option<&dyn Budget>) -> Aftermath {
    let mut numbers = Numbers::new(Seed::new(1));
    let mut events = BinaryHeap::new();
    let mut requests = Vec::new();
    let mut born = 0.0;
    while born < END {
        events.push(Reverse((Seconds(born), Event::Sent, requests.len())));
        let delays = policy.delays(Seed::new(2).for_call(requests.len() as u64));
        requests.push(Request { born, delays, loan: BudgetPermit::NONE });
        born -= (1.0 - numbers.next()).ln() / REQUESTS_PER_SECOND;
    }

    let mut server = Server::default();
    let counts = |born: f64| (STALL.0..END - 20.0).contains(&born);
    let (mut made, mut answered) = (0_u32, 0_u32);
    while let Some(Reverse((Seconds(now), event, id))) = events.pop() {
        let Request { born, delays, loan } = &mut requests[id];
        let instant = Instant::from_nanos((now * 1e9) as u64);
        if let Event::Sent | Event::SentAgain = event {
            made += u32::from(counts(*born));
            if let (Some(budget), Event::Sent) = (budget, event) {
                *loan = budget.on_first_attempt(&instant);
            }
            let (ends, end) = match server.take(now + TRIP) {
                Some(done) if done + TRIP <= now + PATIENCE => (done + TRIP, Event::Answered),
                Some(_) => (now + PATIENCE, Event::Failed),
                None => (now + 2.0 * TRIP, Event::Failed),
            };
            events.push(Reverse((Seconds(ends), end, id)));
            continue;
        }
        let outcome = if event == Event::Answered { Outcome::Success } else { Outcome::TRANSIENT };
        if let Some(budget) = budget {
            budget.record(core::mem::replace(loan, BudgetPermit::NONE), &outcome, &instant);
        }
        if event == Event::Answered {
            answered += u32::from(counts(*born));
            continue;
        }
        let Some(delay) = delays.next() else { continue };
        if let Some(budget) = budget {
            let Some(lent) = budget.try_acquire(FailureKind::Transient, &instant) else { continue };
            *loan = lent;
        }
        events.push(Reverse((Seconds(now + delay.as_secs_f64()), Event::SentAgain, id)));
    }
    let requests = requests.iter().filter(|request| counts(request.born)).count() as f64;
    Aftermath { amplification: f64::from(made) / requests, answered: f64::from(answered) / requests }
}

/// An independent implementation of the model gave 0.959 without retries and 0.000 with three of them.
#[test]
fn the_model_gives_what_an_independent_one_gave() {
    let none = stalls(&Policy::stop().build().unwrap(), None);
    assert!((none.answered - 0.959).abs() < 0.01, "{none:?}");
    let three = stalls(&"exponential base=100ms cap=2s jitter=full max-attempts=4".parse().unwrap(), None);
    assert!(three.answered < 0.001 && three.amplification > 3.9, "{three:?}");
}
