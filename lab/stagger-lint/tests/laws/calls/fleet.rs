use core::cell::{Cell, RefCell};
use core::cmp::Reverse;
use core::fmt;
use core::time::Duration;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use stagger::reconnect::Reconnect;
use stagger::{Outcome, Policy, Retrier, Seed, ServerHint};
use stagger_sim::reconnect::{Acceptor, FirstAttempt, ReconnectFigures, ReconnectScenario, RetryAfter};
use tokio::sync::Notify;

use super::super::draws::Draws;
use super::super::law::{Law, Verdict};
use super::comparison::{Measure, compare};
use super::policies;
use super::virtual_time::{self, VirtualTime};

/// What calls do after a mass disconnect.
pub(crate) const CALLS: Law = Law {
    name: "calls",
    statement: "a mass disconnect is simulated as it happens to tasks that call retry()",
    share: 12,
    case: |seed| case(seed, Kind::Calls),
};

/// What kept-up connections do after a mass disconnect.
pub(crate) const CONNECTIONS: Law = Law {
    name: "connections",
    statement: "a mass disconnect is simulated as it happens to tasks with a Reconnect",
    share: 12,
    case: |seed| case(seed, Kind::Connections),
};

/// Times are in seconds.
const FIGURES: [Measure; 9] = [
    Measure { name: "peak of a second", tolerance: [0.5, 0.005] },
    Measure { name: "peak of 100 ms", tolerance: [0.5, 0.01] },
    Measure { name: "attempts per client", tolerance: [0.0, 0.005] },
    Measure { name: "share connected", tolerance: [0.0, 0.002] },
    Measure { name: "share that gave up", tolerance: [0.002, 0.002] },
    Measure { name: "T50", tolerance: [0.002, 0.002] },
    Measure { name: "T99", tolerance: [0.002, 0.002] },
    Measure { name: "mean recovery", tolerance: [0.002, 0.002] },
    Measure { name: "crashes", tolerance: [0.0, 0.0] },
];

/// More attempts of a run take too long as tasks.
const MAX_ATTEMPTS: u64 = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Calls,
    Connections,
}

/// The circumstances of a fleet. Times are in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Fleet {
    pub(crate) kind: Kind,
    pub(crate) policy: Policy,
    pub(crate) clients: u64,
    pub(crate) rate: f64,
    pub(crate) backlog: u32,
    pub(crate) one_way: [u64; 2],
    pub(crate) disconnect_window: u64,
    pub(crate) up_at: u64,
    pub(crate) horizon: u64,
    pub(crate) hint: Option<Duration>,
    /// The server crashes again at more than this number of attempts in a second, at most so often.
    pub(crate) crash_loop: Option<(u32, f64)>,
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
        Ok(()) if trial.crashes > 0 => Verdict::Held("the server crashed again"),
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
        let crashes = kind == Kind::Connections && down > 0.0 && draws.is(0.6);
        // A short outage, so that the server is up again before it would have worked off its backlog.
        let [down, most_backlog] = if crashes && draws.is(0.5) { [0.1 * down, 4.0] } else { [down, 1.0] };
        let mut policy = policies::draw(draws, recovery + 0.2 * down);
        if crashes && draws.is(0.5) {
            // So short that some connections are stable when the server crashes again.
            let stable_after = draws.duration(0.02, 0.5 * recovery);
            policy = policy.to_builder().stable_after(stable_after).build().unwrap_or(policy);
        }
        Self {
            kind,
            clients: clients as u64,
            rate,
            backlog: (rate * draws.between(0.02, most_backlog)).ceil() as u32,
            one_way: [least as u64, (least * draws.between(1.0, 4.0)) as u64],
            disconnect_window: micros(draws.between(0.05, 5.0)),
            up_at: micros(down),
            horizon: micros(10.0 * recovery + down + 30.0),
            hint: draws.is(0.4).then(|| draws.duration(0.2, 10.0)),
            crash_loop: crashes.then(|| (draws.between(1.0, 6.0) as u32, draws.between(0.02, 0.6) * clients)),
            policy,
        }
    }

    pub(crate) fn scenario(&self) -> Option<ReconnectScenario> {
        let micros = Duration::from_micros;
        let first_attempt = match self.kind {
            Kind::Calls => FirstAttempt::Immediate,
            Kind::Connections => FirstAttempt::AfterDelay,
        };
        let (crashes, above) = self.crash_loop.unwrap_or((0, 1.0));
        ReconnectScenario::builder(self.clients)
            .crash_loop(crashes, above)
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
    pub(crate) fn figures(&self, figures: &ReconnectFigures) -> [f64; 9] {
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
            figures.crashes as f64,
        ]
    }

    /// Runs every client as a task, and returns the same figures.
    pub(crate) fn run_tasks(self, seed: Seed) -> [f64; 9] {
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
                on_their_way: RefCell::default(),
                answers: RefCell::new(vec![None; self.clients as usize]),
                crashes: Crashes { up_at: Cell::new(self.up_at), ..Crashes::default() },
                log: RefCell::new(Log { connected: vec![None; self.clients as usize], ..Log::default() }),
            });
            for id in 0..self.clients {
                let draws = Cell::new(Draws::new(seed.for_call(id)));
                let client = Client { world: Rc::clone(&world), id: id as usize, draws };
                tokio::task::spawn_local(client.run());
            }
            world.time.wait_until(self.horizon, 0.0).await;
            let log = world.log.borrow();
            log.figures(&self, world.crashes.times.borrow().len())
        })
        .unwrap_or([f64::NAN; 9])
    }
}

impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, policy, clients, rate, backlog, one_way: [least, most], hint, .. } = self;
        let Self { disconnect_window, up_at, horizon, crash_loop, .. } = self;
        write!(
            f,
            "{kind:?} with {policy}; {clients} clients, {rate}/s, backlog of {backlog}, hint {hint:?}, one way "
        )?;
        write!(f, "{least} to {most} us, lost within {disconnect_window} us, up at {up_at} of {horizon} us, ")?;
        write!(f, "crash loop {crash_loop:?}")
    }
}

/// How much longer than needed to be stable.
const STABLE_FOR: Duration = Duration::from_secs(1);

/// A server, as the documentation of [`stagger_sim::reconnect`] describes it, and what happened there.
struct World {
    fleet: Fleet,
    time: VirtualTime,
    acceptor: RefCell<Acceptor>,
    /// The attempts on their way: when each arrives, a draw that breaks ties, and the client.
    on_their_way: RefCell<BinaryHeap<Reverse<(u64, u64, usize)>>>,
    /// The answers to the attempts that have arrived, by client: when the handshake is complete, and the number of
    /// crashes before.
    answers: RefCell<Vec<Option<(Result<u64, Busy>, usize)>>>,
    crashes: Crashes,
    log: RefCell<Log>,
}

/// The crashes of a server. Times are in microseconds.
#[derive(Default)]
struct Crashes {
    up_at: Cell<u64>,
    /// The attempts of the last second at a server that was up.
    recent: RefCell<VecDeque<u64>>,
    times: RefCell<Vec<u64>>,
    crash: Notify,
}

/// What happened in a run. Times are in microseconds.
#[derive(Default)]
struct Log {
    arrivals: Vec<u64>,
    /// When each client that is connected heard of it, and how long after it had lost its first connection.
    connected: Vec<Option<[u64; 2]>>,
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

/// A connection that is open: when the client heard of it, and the number of crashes before.
#[derive(Clone, Copy, Debug)]
struct Open {
    heard: u64,
    crashes: usize,
}

/// A client, which runs as a task.
struct Client {
    world: Rc<World>,
    id: usize,
    draws: Cell<Draws>,
}

impl World {
    /// Answers the attempts that have arrived, in the order of their arrival. Tasks wake in whole milliseconds, in an
    /// order of tokio's, which would favor the attempts with the longest way.
    fn answer_arrivals(&self) {
        let now = self.time.now();
        let mut on_their_way = self.on_their_way.borrow_mut();
        while on_their_way.peek().is_some_and(|Reverse((arrives, ..))| *arrives <= now) {
            let Some(Reverse((arrives, _, client))) = on_their_way.pop() else { break };
            self.log.borrow_mut().arrivals.push(arrives);
            let answer = self.offer(arrives);
            self.answers.borrow_mut()[client] = Some((answer, self.crashes.times.borrow().len()));
        }
    }

    /// Handles an attempt that arrives at this time; returns when its handshake is complete.
    fn offer(&self, now: u64) -> Result<u64, Busy> {
        let Self { fleet, acceptor, crashes, .. } = self;
        if now < crashes.up_at.get() {
            return Err(Busy(None));
        }
        if let Some((most, above)) = fleet.crash_loop {
            let (mut recent, mut times) = (crashes.recent.borrow_mut(), crashes.times.borrow_mut());
            recent.push_back(now);
            while recent.front().is_some_and(|first| first + 1_000_000 <= now) {
                recent.pop_front();
            }
            if recent.len() as f64 > above && times.len() < most as usize {
                recent.clear();
                times.push(now);
                crashes.up_at.set(now + fleet.up_at);
                *acceptor.borrow_mut() = Acceptor::new(fleet.rate, fleet.backlog);
                crashes.crash.notify_waiters();
                return Err(Busy(None));
            }
        }
        let done = acceptor.borrow_mut().offer(Duration::from_micros(now));
        done.map(|done| done.as_micros() as u64).ok_or(Busy(fleet.hint))
    }
}

impl Client {
    async fn run(self) {
        let Fleet { kind, policy, disconnect_window, .. } = self.world.fleet;
        let seed = self.draw(Draws::seed);
        let lost = (self.draw(Draws::share) * disconnect_window as f64) as u64;
        match kind {
            Kind::Calls => {
                self.wait_until(lost).await;
                let call = stagger::retry(&policy, async || self.attempt().await).classify(Busy::outcome).seed(seed);
                self.record(lost, call.await.ok());
            }
            Kind::Connections => self.keep_connected(Retrier::new(policy).seed(seed), lost).await,
        }
    }

    /// Keeps a connection open, which is lost first at `first_loss`, and again with each crash.
    async fn keep_connected(&self, retrier: Retrier, first_loss: u64) {
        let has_started = Cell::new(false);
        let mut reconnect =
            Reconnect::new(retrier.classify_exactly(Busy::outcome), async || match has_started.replace(true) {
                true => self.attempt().await,
                false => Ok(Open { heard: 0, crashes: 0 }),
            });
        // The first connection, which nothing rejects.
        let _ = reconnect.next().await;
        let mut lost = first_loss;
        loop {
            self.wait_until(lost).await;
            let open = reconnect.next().await.ok();
            self.record(first_loss, open);
            let Some(open) = open else { return };
            let crashed = self.crash_after(open.crashes).await;
            let window = self.world.fleet.disconnect_window as f64;
            lost = open.heard.max(crashed + (self.draw(Draws::share) * window) as u64);
            self.world.log.borrow_mut().connected[self.id] = None;
        }
    }

    /// Makes an attempt.
    async fn attempt(&self) -> Result<Open, Busy> {
        let World { time, on_their_way, answers, .. } = &*self.world;
        let arrives = time.now() + self.one_way();
        on_their_way.borrow_mut().push(Reverse((arrives, self.draw(Draws::bits), self.id)));
        time.wait_until(arrives, 0.0).await;
        self.world.answer_arrivals();
        let Some((answer, before)) = answers.borrow_mut()[self.id].take() else { return Err(Busy(None)) };
        let done = answer.unwrap_or(arrives);
        let back = self.one_way();
        // A handshake that is pending when the server crashes fails then.
        let pending = time.before(done, self.crash_after(before)).await;
        let (answer, done) = match (answer, pending) {
            (Ok(done), Some(crashed)) if crashed < done => (Err(Busy(None)), crashed),
            _ => (answer, done),
        };
        self.wait_until(done + back).await;
        answer.map(|done| Open { heard: done + back, crashes: before })
    }

    /// Waits for the crash after this number of crashes, and returns when it was.
    async fn crash_after(&self, before: usize) -> u64 {
        let Crashes { crash, times, .. } = &self.world.crashes;
        loop {
            let notified = crash.notified();
            if let Some(at) = times.borrow().get(before) {
                return *at;
            }
            notified.await;
        }
    }

    fn record(&self, first_loss: u64, open: Option<Open>) {
        let mut log = self.world.log.borrow_mut();
        match open {
            Some(Open { heard, .. }) => log.connected[self.id] = Some([heard, heard.saturating_sub(first_loss)]),
            None => log.gave_up += 1,
        }
    }

    async fn wait_until(&self, at: u64) {
        self.world.time.wait_until(at, self.draw(Draws::share)).await;
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
    fn figures(&self, fleet: &Fleet, crashes: usize) -> [f64; 9] {
        let clients = fleet.clients as f64;
        let [mut at, recovered]: [Vec<_>; 2] = [0, 1].map(|what| {
            let on_time = self.connected.iter().flatten().filter(|[heard, _]| *heard <= fleet.horizon);
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
            crashes as f64,
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
