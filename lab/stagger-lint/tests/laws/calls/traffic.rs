use core::cell::{Cell, RefCell};
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::rc::Rc;

use stagger::{FailureKind, Outcome, Policy, Retrier, Seed, ServerHint, StopReason};
use stagger_sim::outage::{OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder};

use super::super::draws::Draws;
use super::super::law::{Law, Verdict};
use super::comparison::{Measure, compare};
use super::guards::GuardSettings;
use super::policies;
use super::virtual_time::{self, VirtualTime};

/// What happens to a server under continuous traffic.
pub(crate) const OUTAGES: Law = Law {
    name: "outages",
    statement: "an outage under traffic is simulated as it happens to tasks with shared guards",
    share: 9,
    case,
};

/// Those of the whole run are counted from the start of the outage.
const FIGURES: [Measure; 9] = [
    Measure { name: "attempts per request", tolerance: [0.002, 0.005] },
    Measure { name: "share served", tolerance: [0.002, 0.002] },
    Measure { name: "peak of a second", tolerance: [0.5, 0.005] },
    Measure { name: "final goodput", tolerance: [0.003, 0.005] },
    Measure { name: "final load", tolerance: [0.003, 0.005] },
    Measure { name: "share rejected by breakers", tolerance: [0.002, 0.005] },
    Measure { name: "share of the runs that end up", tolerance: [0.0, 0.0] },
    Measure { name: "share of the runs that never fall", tolerance: [0.0, 0.0] },
    Measure { name: "recovery", tolerance: [1e-6, 0.0] },
];

/// More requests take too long as tasks.
const MAX_ATTEMPTS: u64 = 60_000;

/// The circumstances of an outage. Times are in microseconds.
#[derive(Clone, Copy)]
struct Traffic {
    policy: Policy,
    guards: GuardSettings,
    rate: f64,
    capacity: f64,
    queue: u32,
    processes: u32,
    outage: OutageKind,
    one_way: u64,
    timeout: u64,
    /// The hint in a rejection.
    hint: Option<Duration>,
    start: u64,
    end: u64,
    horizon: u64,
}

fn case(seed: Seed) -> Verdict {
    let mut draws = Draws::new(seed);
    let traffic = Traffic::draw(&mut draws);
    let Some(scenario) = traffic.scenario() else {
        return Verdict::Broken(format!("not a scenario: {traffic}"));
    };
    let trial = traffic.simulate(&scenario, draws.seed());
    if trial.attempts.total() > MAX_ATTEMPTS {
        return Verdict::Silent("too many attempts to make them as tasks");
    }
    let simulated = |seed| traffic.figures(&traffic.simulate(&scenario, seed));
    match compare(&FIGURES, &mut draws, simulated, |seed| traffic.run_tasks(seed)) {
        Ok(()) => Verdict::Held(traffic.guards.kind()),
        Err(differences) => Verdict::Broken(format!("{traffic}{differences}")),
    }
}

impl Traffic {
    fn draw(draws: &mut Draws) -> Self {
        // So slow that a millisecond, the resolution of tokio's timer, is short even for clients that stay in step: at
        // ten times these rates, a queue of 30 ms serves 10 % more of them.
        let rate = draws.between(6.0, 25.0);
        let capacity = rate * draws.between(1.02, 4.0);
        let millis = |draws: &mut Draws, least: f64, most: f64| 1_000 * draws.between(least, most) as u64;
        let (start, duration) = (millis(draws, 2e4, 5e4), millis(draws, 500.0, 8e4));
        let timeout = millis(draws, 500.0, 3e4);
        // At most half of the timeout: a round trip.
        let one_way =
            if draws.is(0.7) { millis(draws, 10.0, 250.0) } else { millis(draws, 20.0, 4e-4 * timeout as f64) };
        let most_queue = if draws.is(0.5) { 0.5 } else { 6.0 };
        Self {
            rate,
            capacity,
            queue: (capacity * draws.between(0.02, most_queue)).ceil() as u32,
            processes: draws.between(1.0, 20.0) as u32,
            outage: if draws.is(0.6) { OutageKind::Stall } else { OutageKind::Reject },
            one_way,
            timeout,
            start,
            end: start + duration,
            horizon: start + duration + millis(draws, 1.2e5, 3e5),
            guards: GuardSettings::draw(draws),
            policy: policies::draw(draws, 10.0),
            hint: draws.is(0.3).then(|| draws.duration(0.2, 20.0)),
        }
    }

    fn scenario(&self) -> Option<OutageScenario> {
        let micros = Duration::from_micros;
        let builder = OutageScenario::builder(self.rate);
        let builder = self.hint.into_iter().fold(builder, OutageScenarioBuilder::retry_after);
        builder
            .capacity(self.capacity)
            .queue(self.queue)
            .processes(self.processes)
            .one_way(micros(self.one_way))
            .timeout(micros(self.timeout))
            .outage(self.outage, micros(self.start), micros(self.end - self.start))
            .horizon(micros(self.horizon))
            .build()
            .ok()
    }

    fn simulate(&self, scenario: &OutageScenario, seed: Seed) -> OutageFigures {
        scenario.run(&self.policy, |seed| self.guards.process(seed), seed)
    }

    /// Returns the figures of a simulation. A system that is down at the horizon counts as recovered there.
    fn figures(&self, figures: &OutageFigures) -> [f64; 9] {
        let after = (self.horizon - self.end) as f64 / 1e6;
        [
            figures.amplification(),
            figures.success_ratio(),
            figures.peak_second() as f64,
            figures.final_goodput(),
            figures.final_load(),
            figures.rejected as f64 / figures.requests.total() as f64,
            f64::from(figures.state_at_horizon().is_up()),
            f64::from(figures.fell_at().is_none()),
            figures.recovery().map_or(after, |recovery| recovery.as_secs_f64()),
        ]
    }

    /// Runs every request as a task, and returns the same figures.
    fn run_tasks(self, seed: Seed) -> [f64; 9] {
        virtual_time::run(async move {
            let timeout = Duration::from_micros(self.timeout);
            let process = |process: u32| {
                let retrier = Retrier::new(self.policy).timeout(timeout).classify_exactly(Refused::outcome);
                self.guards.retrier(retrier, seed.for_call(u64::from(process)))
            };
            let world = Rc::new(World {
                traffic: self,
                time: VirtualTime::starting(Duration::ZERO),
                processes: (0..self.processes).map(process).collect(),
                queue: RefCell::default(),
                log: RefCell::default(),
                unsettled: Cell::new(0),
            });
            let mut draws = Draws::new(seed.for_call(u64::from(u32::MAX)));
            let mut arrives = 0.0;
            loop {
                arrives += -(1.0 - draws.share()).ln() * 1e6 / self.rate;
                let now = arrives as u64;
                world.time.wait_until(now, draws.share()).await;
                // The load continues until the requests that arrived before the horizon are settled.
                if now >= self.horizon && world.unsettled.get() == 0 || now >= 2 * self.horizon {
                    break;
                }
                let place = (draws.share() * f64::from(self.processes)) as usize;
                tokio::task::spawn_local(Rc::clone(&world).request(now, place, draws.seed()));
            }
            let log = world.log.borrow();
            log.figures(&self)
        })
        .unwrap_or([f64::NAN; 9])
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, guards, rate, capacity, queue, processes, outage, .. } = self;
        let Self { one_way, timeout, start, end, horizon, .. } = self;
        write!(f, "{policy}; {guards:?}; {rate}/s of {capacity}/s from {processes} processes, queue of {queue}, ")?;
        write!(f, "{outage:?} from {start} to {end} of {horizon} us, one way {one_way} us, timeout {timeout} us, ")?;
        write!(f, "hint {:?}", self.hint)
    }
}

/// A server, as the documentation of [`stagger_sim::outage`] describes it, its clients, and what happened.
struct World {
    traffic: Traffic,
    time: VirtualTime,
    processes: Vec<Retrier>,
    /// When each job at the server is complete.
    queue: RefCell<VecDeque<f64>>,
    log: RefCell<Log>,
    /// Number of requests without an outcome that arrived before the horizon.
    unsettled: Cell<u64>,
}

/// What happened in a run, in microseconds.
#[derive(Default)]
struct Log {
    requests: Vec<u64>,
    /// When each attempt was made, and when its request arrived.
    attempts: Vec<[u64; 2]>,
    /// When each request arrived that succeeded, and when it did.
    successes: Vec<[u64; 2]>,
    /// When the breaker rejected a request.
    rejected: Vec<u64>,
}

/// An attempt that the server refused.
#[derive(Clone, Copy, Debug)]
struct Refused {
    kind: FailureKind,
    hint: Option<Duration>,
}

impl Refused {
    fn outcome(&self) -> Outcome {
        Outcome::Failed { kind: self.kind, hint: self.hint.map(ServerHint::AtLeast) }
    }
}

impl World {
    async fn request(self: Rc<Self>, arrived: u64, process: usize, seed: Seed) {
        let is_counted = u64::from(arrived < self.traffic.horizon);
        self.unsettled.set(self.unsettled.get() + is_counted);
        self.log.borrow_mut().requests.push(arrived);
        let done = self.processes[process].run(async || self.attempt(arrived).await).seed(seed).await;
        let (mut log, now) = (self.log.borrow_mut(), self.time.now());
        match done {
            Ok(()) => log.successes.push([arrived, now]),
            Err(error) if error.stop_reason() == StopReason::BREAKER => log.rejected.push(now),
            Err(_) => {}
        }
        self.unsettled.set(self.unsettled.get() - is_counted);
    }

    async fn attempt(&self, arrived: u64) -> Result<(), Refused> {
        let one_way = self.traffic.one_way;
        let sent = self.time.now();
        self.log.borrow_mut().attempts.push([sent, arrived]);
        self.time.wait_until(sent + one_way, 0.0).await;
        let now = self.time.now();
        let answer = self.serve(now as f64);
        let answered = answer.map_or(now, |done| done as u64);
        self.time.wait_until(answered + one_way, 0.0).await;
        answer.map(drop)
    }

    /// Returns when the job of an attempt that arrives now is complete.
    fn serve(&self, now: f64) -> Result<f64, Refused> {
        let Traffic { outage, start, end, capacity, queue: room, hint, .. } = self.traffic;
        let (start, end) = (start as f64, end as f64);
        if outage == OutageKind::Reject && now >= start && now < end {
            return Err(Refused { kind: FailureKind::Transient, hint });
        }
        let mut queue = self.queue.borrow_mut();
        while queue.front().is_some_and(|&done| done <= now) {
            queue.pop_front();
        }
        if queue.len() >= room as usize {
            return Err(Refused { kind: FailureKind::Throttled, hint });
        }
        let begins = queue.back().map_or(now, |&last| last.max(now));
        let done = match outage {
            // During a stall the time of the server stands still.
            OutageKind::Stall => {
                let done = begins.min(start) + (begins - end).max(0.0) + 1e6 / capacity;
                if done > start { done + (end - start) } else { done }
            }
            _ => begins + 1e6 / capacity,
        };
        queue.push_back(done);
        Ok(done)
    }
}

impl Log {
    fn figures(&self, traffic: &Traffic) -> [f64; 9] {
        let Traffic { rate, start, end, horizon, .. } = *traffic;
        let count = |times: &mut dyn Iterator<Item = u64>, from: u64, until: u64| {
            times.filter(|time| (from..until).contains(time)).count() as f64
        };
        // Bins of 100 ms, like those of the simulator.
        let bin = |time: u64| time / 100_000 * 100_000;
        let ratio = |part: f64, whole: f64| part / whole.max(1.0);
        let requests = |from, until| count(&mut self.requests.iter().copied(), bin(from), bin(until));
        let attempts = |from, until| count(&mut self.attempts.iter().map(|times| times[0]), bin(from), bin(until));
        let served = |from, until| count(&mut self.successes.iter().map(|times| times[0]), bin(from), bin(until));
        let good = |from, until| count(&mut self.successes.iter().map(|times| times[1]), bin(from), bin(until));
        let early = horizon.saturating_sub(20_000_000).max(start);
        let late = horizon - 10_000_000;
        let first_second = start / 1_000_000;
        let peak = (first_second..horizon.div_ceil(1_000_000))
            .map(|second| attempts(1_000_000 * second, horizon.min(1_000_000 * (second + 1))))
            .fold(0.0, f64::max);
        let own = self.attempts.iter().filter(|[sent, arrived]| *arrived >= start && *sent < horizon);
        let own_attempts = own.count() as f64;
        let arrived = count(&mut self.requests.iter().copied(), start, horizon);
        let [falls, is_up, recovered] = self.history(traffic);
        [
            ratio(own_attempts, arrived),
            ratio(served(start, early), requests(start, early)),
            peak,
            good(late, horizon) / (10.0 * rate),
            attempts(late, horizon) / (10.0 * rate),
            ratio(count(&mut self.rejected.iter().copied(), 0, horizon), requests(0, horizon)),
            is_up,
            1.0 - falls.min(1.0),
            if is_up > 0.0 { (recovered - end as f64 / 1e6).max(0.0) } else { (horizon - end) as f64 / 1e6 },
        ]
    }

    /// Returns how often the system fell, whether it is up at the end, and the time in seconds since when: by the share
    /// of the requests of each window that was served.
    fn history(&self, traffic: &Traffic) -> [f64; 3] {
        let Traffic { rate, start, horizon, .. } = *traffic;
        let width = 1e6_f64.max((1e8 / rate).ceil()) as u64;
        let windows = ((horizon - start) / width).max(1);
        let mut counts = vec![[0_u64; 2]; windows as usize];
        let mut add = |times: &mut dyn Iterator<Item = u64>, what: usize| {
            for time in times.filter(|time| (start..horizon).contains(time)) {
                counts[((time - start) / width).min(windows - 1) as usize][what] += 1;
            }
        };
        add(&mut self.requests.iter().copied(), 0);
        add(&mut self.successes.iter().map(|times| times[0]), 1);
        let (mut falls, mut is_up, mut good, mut since) = (0, true, 0, 0);
        for (window, [arrived, served]) in (0_u64..).zip(counts) {
            good = if served as f64 >= 0.9 * arrived as f64 { good + 1 } else { 0 };
            if is_up && good == 0 {
                (falls, is_up) = (falls + 1, false);
            } else if !is_up && good == 5 {
                (is_up, since) = (true, start + (window - 4) * width);
            }
        }
        [f64::from(falls), f64::from(is_up), since as f64 / 1e6]
    }
}
