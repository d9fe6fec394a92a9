//! Random deployments: what `check` is told of them, and the simulation of the same.

use core::num::{NonZeroU32, NonZeroU64};
use core::time::Duration;

use stagger::{Policy, Seed};
use stagger_core::text::Rate;
use stagger_lint::{Budgeted, DeploymentContext, Purpose};
use stagger_sim::outage::{DefaultGuards, OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder};
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario};

use super::draws::Draws;

/// A fleet of connections that are kept up, and an outage of their server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fleet {
    /// What `check` is told.
    pub(crate) context: DeploymentContext,
    /// Number of clients.
    pub(crate) clients: u32,
    /// Capacity of the server, in handshakes per second.
    pub(crate) capacity: f64,
    /// How long the server is down.
    pub(crate) down: Duration,
    scenario: ReconnectScenario,
}

/// With fewer handshakes per second, the arrivals of a second say little about their rate.
const LEAST_CAPACITY: f64 = 50.0;

impl Fleet {
    /// Draws 200 to 5,000 clients, a server that accepts them within 0.2 s to a minute, and an outage of up to ten
    /// minutes.
    pub(crate) fn draw(draws: &mut Draws) -> Option<Self> {
        let window = draws.between(0.2, 60.0);
        let clients = draws.between(200.0, 5_000.0).max(LEAST_CAPACITY * window).round();
        let capacity = (clients / window * 10.0).round() / 10.0;
        let down = if draws.is(0.25) { Duration::ZERO } else { draws.duration(0.1, 600.0) };
        let context = DeploymentContext::default()
            .purpose(Purpose::Reconnecting)
            .clients(NonZeroU64::new(clients as u64)?)
            .capacity(Rate::per_second(capacity)?);
        let horizon = Duration::from_secs(3_600) + (Duration::from_secs_f64(window) + down) * 10;
        let scenario = ReconnectScenario::builder(clients as u64).rate(capacity);
        let scenario = scenario.backlog((capacity / 2.0).ceil() as u32).down_for(down).horizon(horizon);
        Some(Self { context, clients: clients as u32, capacity, down, scenario: scenario.build().ok()? })
    }

    /// Returns clients / capacity, in seconds.
    pub(crate) fn window(&self) -> f64 {
        f64::from(self.clients) / self.capacity
    }

    /// Simulates the outage.
    pub(crate) fn run(&self, policy: &Policy, seed: Seed) -> ReconnectFigures {
        self.scenario.run(policy, seed)
    }

    /// Tells `check` the length of the outage, or half of the time nothing. Returns the lengths that it says it
    /// simulates.
    pub(crate) fn told(&mut self, draws: &mut Draws) -> [Duration; 3] {
        told(&mut self.context, self.down, draws, [0, 60, 600])
    }

    /// Returns the scenario with another outage, and at most this many clients.
    pub(crate) fn with_outage(&self, down: Duration, most: u64) -> Option<ReconnectScenario> {
        ReconnectScenario::of_fleet(u64::from(self.clients), self.capacity, down, most).build().ok()
    }

    /// Returns the command that simulates it.
    pub(crate) fn command(&self, policy: &Policy) -> String {
        let (clients, capacity, down) = (self.clients, self.capacity, self.down);
        let backlog = (capacity / 2.0).ceil();
        format!(
            "stagger simulate reconnect --clients {clients} --capacity {capacity}/s --backlog {backlog} --down \
             {down:?} -p '{policy}'"
        )
    }
}

fn told(context: &mut DeploymentContext, down: Duration, draws: &mut Draws, usual: [u64; 3]) -> [Duration; 3] {
    if down.is_zero() || draws.is(0.5) {
        return usual.map(Duration::from_secs);
    }
    *context = context.down(down);
    [down / 2, down, down * 2]
}

/// Calls that arrive at processes with a guard each, and an outage of their server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls {
    /// What `check` is told.
    pub(crate) context: DeploymentContext,
    /// The guard of a process.
    pub(crate) budget: DefaultGuards,
    /// Calls per second, and the capacity of the server.
    pub(crate) rates: (f64, f64),
    /// Number of processes.
    pub(crate) processes: u32,
    queue: u32,
    /// The server's `Retry-After`.
    hint: Option<Duration>,
    /// How long the server is down.
    pub(crate) down: Duration,
    /// How it behaves then.
    pub(crate) kind: OutageKind,
    timeout: Duration,
    horizon: Duration,
    scenario: OutageScenario,
}

/// The start of the outage.
const BEGINS: Duration = Duration::from_secs(20);
/// The queue of the server, in seconds of work, as of `stagger simulate outage`.
const QUEUE_SECONDS: f64 = 3.0;
/// Time after the outage in which the server may recover, and the same in windows of a hundred calls.
const AFTERWARD: Duration = Duration::from_secs(240);
const WINDOWS: f64 = 30.0;

impl Calls {
    /// Draws 5 to 250 calls per second, a load of 5 to 90 % of the capacity, up to 300 processes with one of the
    /// guards, and an outage of up to ten minutes.
    pub(crate) fn draw(draws: &mut Draws) -> Option<Self> {
        let load = if draws.is(0.3) { 1.0 - draws.between(0.1, 0.5) } else { draws.between(0.05, 0.9) };
        let rate = (draws.between(5.0, 250.0) * 10.0).round() / 10.0;
        let capacity = (rate / load * 10.0).round() / 10.0;
        let processes = draws.between(1.0, 300.0) as u32;
        let budget =
            draws.one_of(&[&[DefaultGuards::None, DefaultGuards::None], &DefaultGuards::TRIED[..]].concat())?;
        let timeout = draws.duration(0.1, 5.0);
        let down = if draws.is(0.3) { draws.duration(0.1, 600.0) } else { draws.duration(0.1, 30.0) };
        let kind = draws.one_of(&[OutageKind::Stall, OutageKind::Stall, OutageKind::Reject])?;
        let purposes = [Purpose::Interactive, Purpose::Serverless, Purpose::Background, Purpose::Near, Purpose::Far];
        let mut context = DeploymentContext::default()
            .requests(Rate::per_second(rate)?)
            .capacity(Rate::per_second(capacity)?)
            .clients(NonZeroU64::new(u64::from(processes))?)
            .attempt_timeout(timeout)
            .budget(Budgeted::With(budget));
        if draws.is(0.8) {
            context = context.purpose(draws.one_of(&purposes)?);
        }
        if draws.is(0.2) {
            context = context.deadline(draws.duration(1.0, 60.0));
        }
        // `check` is told of a queue if it is as long as the callers wait.
        let waits = (capacity * timeout.as_secs_f64()).floor().max(1.0);
        let is_told = draws.is(0.25);
        let queue = if is_told { waits } else { (capacity * QUEUE_SECONDS).ceil() } as u32;
        if let Some(queue) = NonZeroU32::new(queue).filter(|_| is_told) {
            context = context.backlog(queue);
        }
        let hint = draws.is(0.2).then(|| draws.duration(0.5, 20.0));
        let context = hint.into_iter().fold(context, DeploymentContext::retry_after);
        // Enough time to drain the queue, and to judge it.
        let after = AFTERWARD.max(down * 2).max(Duration::from_secs_f64(WINDOWS * 100.0 / rate));
        let horizon = BEGINS + down + after;
        let scenario = OutageScenario::builder(rate).capacity(capacity).queue(queue).processes(processes);
        let scenario = scenario.timeout(timeout).outage(kind, BEGINS, down).horizon(horizon);
        let scenario = hint.into_iter().fold(scenario, OutageScenarioBuilder::retry_after).build().ok()?;
        let rates = (rate, capacity);
        Some(Self { context, budget, rates, processes, queue, hint, down, kind, timeout, horizon, scenario })
    }

    /// Tells `check` the length of the outage, or half of the time nothing. Returns the lengths that it says it
    /// simulates.
    pub(crate) fn told(&mut self, draws: &mut Draws) -> [Duration; 3] {
        told(&mut self.context, self.down, draws, [2, 15, 60])
    }

    /// Returns the same calls with another stall.
    pub(crate) fn with_stall(&self, down: Duration) -> Option<Self> {
        let horizon = BEGINS + down + self.afterward();
        let (rate, capacity) = self.rates;
        let scenario = OutageScenario::builder(rate).capacity(capacity).queue(self.queue).processes(self.processes);
        let scenario = scenario.timeout(self.timeout).outage(OutageKind::Stall, BEGINS, down).horizon(horizon);
        let scenario = self.hint.into_iter().fold(scenario, OutageScenarioBuilder::retry_after).build().ok()?;
        Some(Self { down, kind: OutageKind::Stall, horizon, scenario, ..*self })
    }

    /// The time in which the server may recover from a stall.
    pub(crate) fn afterward(&self) -> Duration {
        AFTERWARD.max(Duration::from_secs_f64(WINDOWS * 100.0 / self.rates.0))
    }

    /// Simulates the outage with this guard in each process.
    pub(crate) fn run(&self, policy: &Policy, budget: DefaultGuards, seed: Seed) -> OutageFigures {
        self.scenario.run(policy, |seed| budget.process(seed), seed)
    }

    /// Returns the command that simulates it.
    pub(crate) fn command(&self, policy: &Policy, budget: DefaultGuards) -> String {
        let ((rate, capacity), down, timeout) = (self.rates, self.down, self.timeout);
        let queue = self.queue;
        let hint = self.hint.map_or(String::new(), |hint| format!(" --retry-after {hint:?}"));
        let (kind, guards) = (if self.kind == OutageKind::Stall { "stall" } else { "reject" }, budget.name());
        let horizon = self.horizon;
        format!(
            "stagger simulate outage --rate {rate}/s --capacity {capacity}/s --backlog {queue} --processes {} --down \
             {down:?} --outage {kind} --timeout {timeout:?}{hint} --horizon {horizon:?} --guards {guards} -p \
             '{policy}'",
            self.processes
        )
    }
}
