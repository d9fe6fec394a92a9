use core::cell::{Cell, RefCell};
use core::fmt;
use core::time::Duration;
use std::rc::Rc;

use stagger::reconnect::Reconnect;
use stagger::{Outcome, Policy, Retrier, Seed, ServerHint};
use stagger_sim::reconnect::{Acceptor, FirstAttempt, ReconnectFigures, ReconnectScenario, RetryAfter};

use super::comparison::{Measure, compare};
use super::policies;
use super::virtual_time::{self, VirtualTime};
use crate::draws::Draws;
use crate::law::{Law, Verdict};

/// What calls do after a mass disconnect.
pub(crate) const CALLS: Law = Law {
    name: "calls",
    statement: "a mass disconnect is simulated as it happens to tasks that call retry()",
    case: |seed| case(seed, Kind::Calls),
};

/// What kept-up connections do after a mass disconnect.
pub(crate) const CONNECTIONS: Law = Law {
    name: "connections",
    statement: "a mass disconnect is simulated as it happens to tasks with a Reconnect",
    case: |seed| case(seed, Kind::Connections),
};

/// The first of these is compared in attempts, the last four in seconds.
const FIGURES: [Measure; 8] = [
    Measure { name: "peak of a second", tolerance: [0.5, 0.005] },
    Measure { name: "peak of 100 ms", tolerance: [0.5, 0.01] },
    Measure { name: "attempts per client", tolerance: [0.0, 0.005] },
    Measure { name: "share connected", tolerance: [0.0, 0.002] },
    Measure { name: "share that gave up", tolerance: [0.002, 0.002] },
    Measure { name: "T50", tolerance: [0.002, 0.002] },
    Measure { name: "T99", tolerance: [0.002, 0.002] },
    Measure { name: "mean recovery", tolerance: [0.002, 0.002] },
];

/// More attempts of a run take too long as tasks.
const MAX_ATTEMPTS: u64 = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Calls,
    Connections,
}

/// The circumstances of a fleet. Times are in microseconds.
#[derive(Clone, Copy)]
struct Fleet {
    kind: Kind,
    policy: Policy,
    clients: u64,
    rate: f64,
    backlog: u32,
    one_way: [u64; 2],
    disconnect_window: u64,
    up_at: u64,
    horizon: u64,
    hint: Option<Duration>,
}

fn case(seed: Seed, kind: Kind) -> Verdict {
    let mut draws = Draws::new(seed);
    let fleet = Fleet::draw(&mut draws, kind);
    let Some(scenario) = fleet.scenario() else {
        return Verdict::Broken(format!("not a scenario: {fleet}"));
    };
    let trial = scenario.run(&fleet.policy, draws.seed());
    if trial.attempts > MAX_ATTEMPTS {
        return Verdict::Silent("too many attempts to make them as tasks");
    }
    let simulated = |seed| fleet.figures(&scenario.run(&fleet.policy, seed));
    match compare(&FIGURES, &mut draws, simulated, |seed| fleet.run_tasks(seed)) {
        Ok(()) if trial.gave_up > 0 => Verdict::Held("some gave up"),
        Ok(()) if trial.attempts_per_client() > 1.5 => Verdict::Held("a storm"),
        Ok(()) => Verdict::Held("few retries"),
        Err(differences) => Verdict::Broken(format!("{fleet}{differences}")),
    }
}

impl Fleet {
    fn draw(draws: &mut Draws, kind: Kind) -> Self {
        let clients = draws.between(200.0, 3_000.0);
        let recovery = draws.between(0.3, 20.0);
        let rate = clients / recovery;
        let down = if draws.is(0.4) { 0.0 } else { draws.between(0.3, 20.0) };
        let least = draws.between(2e3, 5e4);
        let micros = |seconds: f64| (seconds * 1e6) as u64;
        Self {
            kind,
            clients: clients as u64,
            rate,
            backlog: (rate * draws.between(0.02, 1.0)).ceil() as u32,
            one_way: [least as u64, (least * draws.between(1.0, 4.0)) as u64],
            disconnect_window: micros(draws.between(0.05, 5.0)),
            up_at: micros(down),
            horizon: micros(10.0 * recovery + down + 30.0),
            hint: draws.is(0.4).then(|| draws.duration(0.2, 10.0)),
            policy: policies::draw(draws, recovery + 0.2 * down),
        }
    }

    fn scenario(&self) -> Option<ReconnectScenario> {
        let micros = Duration::from_micros;
        let first_attempt = match self.kind {
            Kind::Calls => FirstAttempt::Immediate,
            Kind::Connections => FirstAttempt::AfterDelay,
        };
        ReconnectScenario::builder(self.clients)
            .rate(self.rate)
            .backlog(self.backlog)
            .one_way(micros(self.one_way[0]), micros(self.one_way[1]))
            .disconnect_window(micros(self.disconnect_window))
            .down_for(micros(self.up_at))
            .horizon(micros(self.horizon))
            .first_attempt(first_attempt)
            .retry_after(self.hint.map_or(RetryAfter::None, RetryAfter::Fixed))
            .build()
            .ok()
    }

    /// Returns the figures of a simulation. A time that is not reached counts as the horizon.
    fn figures(&self, figures: &ReconnectFigures) -> [f64; 8] {
        let time = |time: Option<Duration>| time.map_or(self.horizon as f64 / 1e6, |time| time.as_secs_f64());
        let share = |count: u64| count as f64 / self.clients as f64;
        [
            figures.peak_second() as f64,
            figures.peak() as f64,
            figures.attempts_per_client(),
            share(figures.connected),
            share(figures.gave_up),
            time(figures.t50),
            time(figures.t99),
            figures.recovered_mean.as_secs_f64(),
        ]
    }

    /// Runs every client as a task, and returns the same figures.
    fn run_tasks(self, seed: Seed) -> [f64; 8] {
        virtual_time::run(async move {
            // Every connection has been open for long enough to be stable when it is lost.
            let before = match self.kind {
                Kind::Calls => Duration::ZERO,
                Kind::Connections => self.policy.stable_after().unwrap_or(Duration::from_secs(10)) + STABLE_FOR,
            };
            let world = Rc::new(World {
                fleet: self,
                time: VirtualTime::starting(before),
                acceptor: RefCell::new(Acceptor::new(self.rate, self.backlog)),
                log: RefCell::new(Log::default()),
            });
            for id in 0..self.clients {
                let client = Client { world: Rc::clone(&world), draws: Cell::new(Draws::new(seed.for_call(id))) };
                tokio::task::spawn_local(client.run());
            }
            world.time.wait_until(self.horizon, 0.0).await;
            let log = world.log.borrow();
            log.figures(&self)
        })
        .unwrap_or([f64::NAN; 8])
    }
}

impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, policy, clients, rate, backlog, one_way: [least, most], hint, .. } = self;
        let Self { disconnect_window, up_at, horizon, .. } = self;
        write!(
            f,
            "{kind:?} with {policy}; {clients} clients, {rate}/s, backlog of {backlog}, hint {hint:?}, one way "
        )?;
        write!(f, "{least} to {most} us, lost within {disconnect_window} us, up at {up_at} of {horizon} us")
    }
}

/// How much longer than needed to be stable.
const STABLE_FOR: Duration = Duration::from_secs(1);

/// A server, as the documentation of [`stagger_sim::reconnect`] describes it, and what happened there.
struct World {
    fleet: Fleet,
    time: VirtualTime,
    acceptor: RefCell<Acceptor>,
    log: RefCell<Log>,
}

/// What happened in a run. Times are in microseconds.
#[derive(Default)]
struct Log {
    arrivals: Vec<u64>,
    /// When each client heard that it was connected, and how long it had been without a connection.
    connected: Vec<[u64; 2]>,
    gave_up: u64,
}

/// A rejected attempt, with the server's hint.
#[derive(Clone, Copy, Debug)]
struct Busy(Option<Duration>);

impl Busy {
    const fn outcome(&self) -> Outcome {
        match self.0 {
            Some(after) => Outcome::throttled(Some(ServerHint::AtLeast(after))),
            None => Outcome::TRANSIENT,
        }
    }
}

/// A client, which runs as a task.
struct Client {
    world: Rc<World>,
    draws: Cell<Draws>,
}

impl Client {
    async fn run(self) {
        let world = &self.world;
        let Fleet { kind, policy, disconnect_window, .. } = world.fleet;
        let seed = self.draw(Draws::seed);
        let lost = (self.draw(Draws::share) * disconnect_window as f64) as u64;
        let connected = match kind {
            Kind::Calls => {
                world.time.wait_until(lost, self.draw(Draws::share)).await;
                stagger::retry(&policy, async || self.attempt().await).classify(Busy::outcome).seed(seed).await.ok()
            }
            Kind::Connections => {
                let retrier = Retrier::new(policy).seed(seed).classify_exactly(Busy::outcome);
                let is_first = Cell::new(true);
                let mut reconnect = Reconnect::new(retrier, async || match is_first.replace(false) {
                    true => Ok(0),
                    false => self.attempt().await,
                });
                let first = reconnect.next().await.is_ok();
                world.time.wait_until(lost, self.draw(Draws::share)).await;
                if first { reconnect.next().await.ok() } else { None }
            }
        };
        let mut log = world.log.borrow_mut();
        match connected {
            Some(heard) => log.connected.push([heard, heard.saturating_sub(lost)]),
            None => log.gave_up += 1,
        }
    }

    /// Makes an attempt; returns when the client heard that it was connected.
    async fn attempt(&self) -> Result<u64, Busy> {
        let World { fleet, time, acceptor, log } = &*self.world;
        let arrives = time.now() + self.one_way();
        time.wait_until(arrives, self.draw(Draws::share)).await;
        log.borrow_mut().arrivals.push(arrives);
        let now = time.now();
        let answer = if arrives < fleet.up_at {
            Err(Busy(None))
        } else {
            let done = acceptor.borrow_mut().offer(Duration::from_micros(now));
            done.ok_or(Busy(fleet.hint))
        };
        let heard = answer.as_ref().map_or(now, |done| done.as_micros() as u64) + self.one_way();
        time.wait_until(heard, self.draw(Draws::share)).await;
        answer.map(|_| heard)
    }

    fn one_way(&self) -> u64 {
        let [least, most] = self.world.fleet.one_way;
        least + (self.draw(Draws::share) * (most - least + 1) as f64) as u64
    }

    fn draw<T>(&self, what: impl FnOnce(&mut Draws) -> T) -> T {
        let mut draws = self.draws.get();
        let drawn = what(&mut draws);
        self.draws.set(draws);
        drawn
    }
}

impl Log {
    fn figures(&self, fleet: &Fleet) -> [f64; 8] {
        let clients = fleet.clients as f64;
        let [mut at, recovered]: [Vec<_>; 2] = [0, 1].map(|what| {
            let on_time = self.connected.iter().filter(|[heard, _]| *heard <= fleet.horizon);
            on_time.map(|times| times[what] as f64 / 1e6).collect()
        });
        at.sort_by(f64::total_cmp);
        let quantile = |share: f64| {
            let rank = (share * clients - 1e-9).ceil() as usize;
            at.get(rank.max(1) - 1).copied().unwrap_or(fleet.horizon as f64 / 1e6)
        };
        [
            peak(&self.arrivals, 10),
            peak(&self.arrivals, 1),
            self.arrivals.len() as f64 / clients,
            at.len() as f64 / clients,
            self.gave_up as f64 / clients,
            quantile(0.5),
            quantile(0.99),
            recovered.iter().sum::<f64>() / (recovered.len() as f64).max(1.0),
        ]
    }
}

/// Returns the maximum number of events in this number of consecutive intervals of 100 ms.
fn peak(times: &[u64], intervals: usize) -> f64 {
    let last = times.iter().max().map_or(0, |last| last / 100_000);
    let mut counts = vec![0_u32; last as usize + intervals];
    times.iter().for_each(|time| counts[(time / 100_000) as usize] += 1);
    counts.windows(intervals).map(|window| window.iter().sum::<u32>()).max().map_or(0.0, f64::from)
}
