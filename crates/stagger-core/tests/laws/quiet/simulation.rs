use core::cmp::Reverse;
use core::time::Duration;
use std::collections::BinaryHeap;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::quiet::QuietPeriod;
use stagger_core::{Guards, Instant, Outcome, Policy, Seed, ServerHint};

use crate::laws::support::{ms, secs};

/// The server: a bucket of tokens, and a time in which it refuses every request, with a hint or without.
#[derive(Clone, Copy)]
pub(super) struct Server {
    pub(super) per_second: u64,
    pub(super) burst: u64,
    pub(super) refuses_from: Duration,
    pub(super) refuses_until: Duration,
    pub(super) retry_after: Option<Duration>,
}

/// The clients: tasks that each make a call per period, or as soon as the last one has ended if that took longer.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) tasks: usize,
    pub(super) period: Duration,
    pub(super) policy: Policy,
    pub(super) length: Duration,
}

/// What happened.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The requests, in the order of their arrival, and whether the server refused them.
    pub(super) requests: Vec<(Duration, bool)>,
    pub(super) calls: usize,
    pub(super) failed: usize,
}

impl Log {
    /// Counts the requests of this time.
    pub(super) fn between(&self, from: Duration, until: Duration) -> usize {
        self.requests.iter().filter(|(at, _)| (from..until).contains(at)).count()
    }

    /// Counts the refused requests from this time on.
    pub(super) fn refused_from(&self, from: Duration) -> usize {
        self.requests.iter().filter(|(at, is_refused)| *at >= from && *is_refused).count()
    }

    /// Counts the most requests in any `length` from this time on.
    pub(super) fn most_within(&self, length: Duration, from: Duration) -> usize {
        let times: Vec<_> = self.requests.iter().map(|(at, _)| *at).filter(|at| *at >= from).collect();
        (0..times.len()).map(|n| times[n..].iter().take_while(|at| **at < times[n] + length).count()).max().unwrap_or(0)
    }
}

const ONE_WAY: Duration = ms(25);

enum Step {
    /// The call of a task begins.
    Call,
    /// A wait of the call is over.
    Ask,
    /// The server's answer arrives.
    Answer(Outcome),
}

struct Task {
    began: Duration,
    seed: u64,
    state: RetryState,
    permits: Permits,
}

/// Runs the load against the server, with the quiet period if there is one. Every choice is drawn from the seed.
pub(super) fn run(server: &Server, load: &Load, quiet: Option<&QuietPeriod>, seed: u64) -> Log {
    let guards = quiet.map_or(Guards::none(), |quiet| Guards::none().quiet(quiet));
    let mut bits = seed;
    let mut draw = move |below: Duration| {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_nanos(((u128::from(bits >> 32) * below.as_nanos()) >> 32) as u64)
    };
    let (mut log, mut tokens, mut filled) = (Log::default(), server.burst as f64, Duration::ZERO);
    let mut tasks: Vec<_> = (0..load.tasks)
        .map(|_| Task { began: Duration::ZERO, seed: 0, state: RetryState::new(), permits: Permits::NONE })
        .collect();
    let mut steps = BinaryHeap::new();
    let mut list: Vec<Option<Step>> = Vec::new();
    let push = |steps: &mut BinaryHeap<_>, list: &mut Vec<Option<Step>>, at: Duration, task: usize, step: Step| {
        steps.push(Reverse((at, list.len(), task)));
        list.push(Some(step));
    };
    for task in 0..load.tasks {
        push(&mut steps, &mut list, draw(load.period), task, Step::Call);
    }
    while let Some(Reverse((at, number, id))) = steps.pop() {
        if at >= load.length {
            break;
        }
        let now = || Instant::from_nanos(at.as_nanos() as u64);
        let task = &mut tasks[id];
        let step = list[number].take().expect("each step is taken once");
        let is_failed = match step {
            Step::Call => {
                log.calls += 1;
                (task.began, task.seed) = (at, seed << 32 | number as u64);
                task.state = RetryState::started(now());
                None
            }
            Step::Ask => None,
            Step::Answer(outcome) => {
                let permits = Permits::take(&mut task.permits);
                let mut machine = RetryMachine::new(&load.policy, &mut task.state, Seed::new(task.seed));
                match machine.decide(outcome, permits, now, &guards) {
                    Decision::Retry { after, permit, .. } => {
                        task.permits = permit;
                        push(&mut steps, &mut list, at + after + draw(ms(1)), id, Step::Ask);
                        continue;
                    }
                    decision => Some(decision != Decision::Done),
                }
            }
        };
        let mut machine = RetryMachine::new(&load.policy, &mut task.state, Seed::new(task.seed));
        let is_failed = match is_failed {
            Some(is_failed) => Some(is_failed),
            None => match machine.turn(&mut task.permits, now, &guards) {
                Ok(Duration::ZERO) => {
                    let permits = Permits::take(&mut task.permits);
                    task.permits = machine.begin(permits, now, &guards).expect("there is no breaker");
                    let arrival = at + ONE_WAY;
                    tokens =
                        (tokens + (arrival - filled).as_secs_f64() * server.per_second as f64).min(server.burst as f64);
                    filled = arrival;
                    let is_out = (server.refuses_from..server.refuses_until).contains(&arrival);
                    let outcome = match () {
                        () if is_out => Outcome::throttled(server.retry_after.map(ServerHint::AtLeast)),
                        () if tokens < 1.0 => Outcome::throttled(None),
                        () => {
                            tokens -= 1.0;
                            Outcome::Success
                        }
                    };
                    log.requests.push((arrival, outcome != Outcome::Success));
                    push(&mut steps, &mut list, arrival + ONE_WAY, id, Step::Answer(outcome));
                    None
                }
                Ok(wait) => {
                    push(&mut steps, &mut list, at + wait + draw(ms(1)), id, Step::Ask);
                    None
                }
                Err(_) => Some(true),
            },
        };
        if let Some(is_failed) = is_failed {
            log.failed += usize::from(is_failed);
            push(&mut steps, &mut list, (task.began + load.period).max(at), id, Step::Call);
        }
    }
    log
}

/// The case of the table: 1,000 tasks and 100 calls per second before a server that takes 120, with a burst of 12.
pub(super) fn table() -> (Server, Load) {
    let policy = Policy::exponential(ms(100), secs(10)).max_attempts(4).build().unwrap();
    (
        Server {
            per_second: 120,
            burst: 12,
            refuses_from: secs(20),
            refuses_until: secs(30),
            retry_after: Some(secs(10)),
        },
        Load { tasks: 1_000, period: secs(10), policy, length: secs(60) },
    )
}
