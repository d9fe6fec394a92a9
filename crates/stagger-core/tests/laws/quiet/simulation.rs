use core::cmp::Reverse;
use core::time::Duration;
use std::collections::BinaryHeap;

use proptest::prelude::*;
use stagger_core::guard::{Answer, Ask, End, Permit, Permits};
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::quiet::{QuietPeriod, QuietState, QuietTrigger};
use stagger_core::{Guard, Guards, Instant, Outcome, Policy, Seed, ServerHint};

use crate::laws::support::{Step, cases, ms, secs, take};

/// The server: a bucket of tokens, and a time in which it refuses every request, with a hint or without.
#[derive(Clone, Copy)]
struct Server {
    per_second: u64,
    burst: u64,
    refuses_from: Duration,
    refuses_until: Duration,
    retry_after: Option<Duration>,
}

/// The clients: tasks that each make a call per period, or as soon as the last one has ended if that took longer.
#[derive(Clone, Copy)]
struct Load {
    tasks: usize,
    period: Duration,
    policy: Policy,
    length: Duration,
}

/// What happened.
#[derive(Debug, Default)]
struct Log {
    /// The requests, in the order of their arrival, and whether the server refused them.
    requests: Vec<(Duration, bool)>,
    calls: usize,
    failed: usize,
}

impl Log {
    /// Counts the requests of this time.
    fn between(&self, from: Duration, until: Duration) -> usize {
        self.requests.iter().filter(|(at, _)| (from..until).contains(at)).count()
    }

    /// Counts the refused requests from this time on.
    fn refused_from(&self, from: Duration) -> usize {
        self.requests.iter().filter(|(at, is_refused)| *at >= from && *is_refused).count()
    }

    /// Counts the most requests in any `length` from this time on.
    fn most_within(&self, length: Duration, from: Duration) -> usize {
        let times: Vec<_> = self.requests.iter().map(|(at, _)| *at).filter(|at| *at >= from).collect();
        (0..times.len()).map(|n| times[n..].iter().take_while(|at| **at < times[n] + length).count()).max().unwrap_or(0)
    }
}

const ONE_WAY: Duration = ms(25);

enum Event {
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
fn run(server: &Server, load: &Load, quiet: Option<&QuietPeriod>, seed: u64) -> Log {
    let guards: Vec<&dyn Guard> = quiet.into_iter().map(|quiet| quiet as &dyn Guard).collect();
    let guards = Guards::of(&guards);
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
    let mut list: Vec<Option<Event>> = Vec::new();
    let push = |steps: &mut BinaryHeap<_>, list: &mut Vec<Option<Event>>, at: Duration, task: usize, step: Event| {
        steps.push(Reverse((at, list.len(), task)));
        list.push(Some(step));
    };
    for task in 0..load.tasks {
        push(&mut steps, &mut list, draw(load.period), task, Event::Call);
    }
    while let Some(Reverse((at, number, id))) = steps.pop() {
        if at >= load.length {
            break;
        }
        let now = || Instant::from_nanos(at.as_nanos() as u64);
        let task = &mut tasks[id];
        let step = list[number].take().expect("each step is taken once");
        let is_failed = match step {
            Event::Call => {
                log.calls += 1;
                (task.began, task.seed) = (at, seed << 32 | number as u64);
                task.state = RetryState::started(now());
                None
            }
            Event::Ask => None,
            Event::Answer(outcome) => {
                let permits = Permits::take(&mut task.permits);
                let mut machine = RetryMachine::new(&load.policy, &mut task.state, Seed::new(task.seed));
                match machine.decide(outcome, permits, now, &guards) {
                    Decision::Retry { after, permit, .. } => {
                        task.permits = permit;
                        push(&mut steps, &mut list, at + after + draw(ms(1)), id, Event::Ask);
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
                    push(&mut steps, &mut list, arrival + ONE_WAY, id, Event::Answer(outcome));
                    None
                }
                Ok(wait) => {
                    push(&mut steps, &mut list, at + wait + draw(ms(1)), id, Event::Ask);
                    None
                }
                Err(_) => Some(true),
            },
        };
        if let Some(is_failed) = is_failed {
            log.failed += usize::from(is_failed);
            push(&mut steps, &mut list, (task.began + load.period).max(at), id, Event::Call);
        }
    }
    log
}

/// The case of the table: 1,000 tasks and 100 calls per second before a server that takes 120, with a burst of 12.
fn table() -> (Server, Load) {
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

/// One round trip after the first refusal the last request of before has arrived, and the pause has begun.
const ARMED: Duration = ms(20_100);
const END: Duration = ms(30_000);

/// Runs with a quiet period that refusals begin, too.
fn with_refusals(server: &Server, load: &Load, seed: u64) -> Log {
    let quiet = QuietPeriod::builder().trigger(QuietTrigger::HintsAndRefusals).build().unwrap();
    run(server, load, Some(&quiet), seed)
}

#[test]
fn one_hint_holds_a_thousand_tasks_and_a_paced_return_fails_almost_none() {
    let (server, load) = table();
    for seed in 0..20 {
        let log = run(&server, &load, Some(&QuietPeriod::new()), seed);
        let most = log.most_within(ms(100), END);
        let figures = (log.between(ARMED, END), most, log.refused_from(END), log.failed, log.calls);
        assert_eq!(log.between(ARMED, END), 0, "requests in the pause, seed {seed}");
        assert!(most <= 20, "{figures:?}, seed {seed}");
        assert!(log.refused_from(END) <= 50, "{figures:?}, seed {seed}");
        assert!(log.failed <= 3, "{figures:?}, seed {seed}");
        assert!(log.calls >= 5_000, "{figures:?}, seed {seed}");
    }
}

#[test]
fn without_it_each_call_finds_out_for_itself() {
    let (server, load) = table();
    let log = run(&server, &load, None, 1);
    assert!(log.between(ARMED, END) > 500 && log.failed > 200, "{} failed", log.failed);
}

/// ScyllaDB #30775: 500 tasks before an object store, which refuses everything for two seconds, without a hint. There,
/// all calls that were frozen start together.
#[test]
fn frozen_tasks_do_not_start_together() {
    let policy = Policy::exponential(ms(100), secs(10)).max_attempts(8).build().unwrap();
    let (from, until) = (secs(5), secs(7));
    let server = Server { per_second: 3_500, burst: 350, refuses_from: from, refuses_until: until, retry_after: None };
    let load = Load { tasks: 500, period: ms(200), policy, length: secs(15) };
    for seed in 0..5 {
        let (log, alone) = (with_refusals(&server, &load, seed), run(&server, &load, None, seed));
        // Armed by the eleventh refusal of fifty, one round trip later.
        let probes = log.between(from + ms(150), until);
        assert!(probes <= 2, "{probes} requests in two seconds of refusals, seed {seed}");
        let most = log.most_within(ms(10), until);
        assert!(most <= 60, "{most} of 500 within 10 ms, seed {seed}");
        assert!(log.failed == 0 && log.refused_from(from) * 4 < alone.refused_from(from), "seed {seed}");
    }
}

/// git-lfs #6322: the server asks for a pause that is longer than the client waits. There, such a hint pauses nothing.
#[test]
fn a_hint_beyond_the_limit_pauses_for_the_limit() {
    let (server, load) = table();
    let server = Server { retry_after: Some(secs(3_600)), refuses_until: secs(25), ..server };
    let load = Load { policy: load.policy.to_builder().max_hint(secs(7_200)).build().unwrap(), ..load };
    let quiet = QuietPeriod::builder().max(secs(8)).build().unwrap();
    let log = run(&server, &load, Some(&quiet), 1);
    let (armed, end) = (ms(20_100), secs(28));
    assert_eq!(log.between(armed, end), 0);
    assert!(log.between(end, end + secs(1)) > 50, "{} calls in the second after", log.between(end, end + secs(1)));
}

/// icechunk #2408: refusals without hints for twenty seconds. There, a client's retries were used up in one.
#[test]
fn refusals_are_backpressure_and_not_failures() {
    let policy = Policy::exponential(ms(100), secs(2)).max_attempts(4).build().unwrap();
    let (from, until) = (secs(5), secs(25));
    let server = Server { per_second: 400, burst: 40, refuses_from: from, refuses_until: until, retry_after: None };
    let load = Load { tasks: 200, period: secs(1), policy, length: secs(60) };
    for seed in 0..5 {
        let (log, alone) = (with_refusals(&server, &load, seed), run(&server, &load, None, seed));
        assert!(alone.failed > 1_000, "without it {} calls fail", alone.failed);
        assert!(log.failed <= 1, "{} calls fail, seed {seed}", log.failed);
        // 1, 2, 4 and 8 s end within it: a probe each.
        assert!((1..=5).contains(&log.between(from + ms(200), until)), "seed {seed}");
    }
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        6 => Just(Outcome::Success),
        2 => Just(Outcome::throttled(None)),
        1 => (0..3_000_u64).prop_map(|hint| Outcome::throttled(Some(ServerHint::AtLeast(ms(hint))))),
        1 => Just(Outcome::TRANSIENT),
        1 => Just(Outcome::Cancelled),
    ];
    prop_oneof![
        3 => (0..400_u64).prop_map(Step::Pass),
        3 => Just(Step::Ask),
        3 => any::<usize>().prop_map(Step::AskAgain),
        1 => any::<usize>().prop_map(Step::Cancel),
        4 => (any::<usize>(), outcome).prop_map(|(n, outcome)| Step::Answer(n, outcome)),
    ]
}

proptest! {
    #![proptest_config(cases(400))]

    /// Whatever happens: no call starts before the end of a pause, at most one probe is in flight within its time, the
    /// number of waiting calls is that of the places, and a call that waits is told a time after which it may ask.
    #[test]
    fn no_history_starts_a_call_in_a_pause(steps in prop::collection::vec(step(), 1..200)) {
        let quiet = QuietPeriod::builder().max_waiting(6).max(ms(2_500)).build().unwrap();
        let mut now = Instant::from_nanos(9_000_000_000);
        let (mut waiting, mut flying) = (Vec::new(), Vec::new());
        for step in steps {
            let before = quiet.snapshot(&now);
            let asked = match step {
                Step::Pass(length) => {
                    now = now.saturating_add(ms(length));
                    None
                }
                Step::Ask => Some(Permit::NONE),
                Step::AskAgain(n) => take(&mut waiting, n),
                Step::Cancel(n) => {
                    if let Some(place) = take(&mut waiting, n) {
                        quiet.settle(place, End::NeverMade, &now);
                    }
                    None
                }
                Step::Answer(n, outcome) => {
                    if let Some(permit) = take(&mut flying, n) {
                        quiet.settle(permit, End::Made(&outcome), &now);
                        let after = quiet.snapshot(&now);
                        prop_assert!(before.state != QuietState::Quiet || after.state == QuietState::Quiet);
                        prop_assert!(after.remaining >= before.remaining);
                        prop_assert!(after.remaining <= ms(32_001));
                    }
                    None
                }
            };
            match asked.map(|permit| quiet.ask(Ask::FIRST, permit, &now)) {
                Some(Answer::Go(permit)) => {
                    prop_assert!(before.remaining.is_zero(), "started {:?} before the end", before.remaining);
                    let after = quiet.snapshot(&now).state;
                    prop_assert!(before.state != QuietState::Quiet || after == QuietState::Probing);
                    flying.push(permit);
                }
                Some(Answer::Wait { after, permit }) => {
                    prop_assert!(before.state != QuietState::Open && !after.is_zero());
                    prop_assert!(after >= before.remaining);
                    waiting.push(permit);
                }
                Some(Answer::No { .. }) => prop_assert!(waiting.len() == 6),
                None => {}
            }
            prop_assert_eq!(quiet.snapshot(&now).waiting as usize, waiting.len());
        }
    }
}
