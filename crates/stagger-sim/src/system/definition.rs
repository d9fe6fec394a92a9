//! The definition of a system, and what can be wrong with it.

use core::fmt;
use core::time::Duration;

use super::edge::Edge;
use super::service::{Service, Times};
use super::trigger::{Fault, Trigger};
use crate::outage::shortest_horizon;
use crate::scenario::setters;

/// Users, services and the calls between them, with the triggers that affect them. A built system is valid.
#[derive(Clone, Debug)]
pub struct System {
    pub(super) settings: SystemBuilder,
    pub(super) graph: Graph,
    /// The end of the simulation, given or by default.
    pub(super) horizon: Duration,
}

/// Builds a [`System`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SystemBuilder {
    pub(super) rate: f64,
    pub(super) arrivals: Arrivals,
    pub(super) processes: u32,
    pub(super) services: Vec<Service>,
    pub(super) edges: Vec<Edge>,
    pub(super) triggers: Vec<Trigger>,
    pub(super) horizon: Option<Duration>,
}

/// How the users' requests are distributed over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arrivals {
    /// At random: a Poisson process. The default.
    #[default]
    Poisson,
    /// One after the other, at equal intervals.
    Fixed,
}

/// Names as numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    /// The edge from the users.
    pub(super) entry: usize,
    /// The service that each edge leads to.
    pub(super) to: Vec<usize>,
    /// The edges that lead out of each service.
    pub(super) out: Vec<Vec<usize>>,
    /// The service that each trigger affects.
    pub(super) targets: Vec<usize>,
}

impl Graph {
    /// Returns the service that makes the calls of an edge; `None` for the users.
    pub(super) fn caller(&self, edge: usize) -> Option<usize> {
        self.out.iter().position(|out| out.contains(&edge))
    }
}

impl System {
    /// The most requests of a run, those after the horizon included.
    pub const MAX_REQUESTS: f64 = 1e9;

    /// How many times as long as its horizon a run [goes on](Self::run_until_decided) at most.
    pub const LONGEST_RUN: u32 = 16;

    /// Starts the definition of a system whose users make this many requests per second: at random, from 10 processes,
    /// until a horizon of 5 minutes or the shortest one at which a recovery can be seen, if that is later.
    pub const fn builder(rate: f64) -> SystemBuilder {
        SystemBuilder {
            rate,
            arrivals: Arrivals::Poisson,
            processes: 10,
            services: Vec::new(),
            edges: Vec::new(),
            triggers: Vec::new(),
            horizon: None,
        }
    }

    /// Returns the settings, to build a variant.
    pub fn to_builder(&self) -> SystemBuilder {
        self.settings.clone()
    }

    /// Returns the services, in the order in which they were added.
    pub fn services(&self) -> &[Service] {
        &self.settings.services
    }

    /// Returns the edges, in the order in which they were added.
    pub fn edges(&self) -> &[Edge] {
        &self.settings.edges
    }

    /// Returns the triggers, in the order in which they were added.
    pub fn triggers(&self) -> &[Trigger] {
        &self.settings.triggers
    }

    /// Returns the end of the simulation.
    #[must_use]
    pub const fn horizon(&self) -> Duration {
        self.horizon
    }

    /// Returns the mean number of requests per second.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.settings.rate
    }

    /// Returns the number of processes or instances that make the calls of an edge, each with its own guards.
    pub(super) fn owners(&self, edge: usize) -> u32 {
        match self.graph.caller(edge) {
            Some(service) => self.settings.services[service].instances,
            None => self.settings.processes,
        }
    }

    /// Returns the start of the first trigger and the end of the last: zero and zero if there is none.
    #[must_use]
    pub fn fault(&self) -> (Duration, Duration) {
        self.settings.fault()
    }

    /// Returns the shortest horizon at which the system can be seen to recover: the end of the last trigger and six
    /// windows, each of a second or of a hundred expected requests.
    #[must_use]
    pub fn min_horizon(&self) -> Duration {
        shortest_horizon(self.fault().1, self.settings.rate)
    }
}

impl SystemBuilder {
    setters! {
        /// Sets the mean number of requests per second. Range: a millionth to a million.
        rate: f64 = rate;
        /// Sets how requests arrive. Default: [`Arrivals::Poisson`].
        arrivals: Arrivals = arrivals;
        /// Sets the number of the users' processes, each with its own guards. A request belongs to one of them, chosen
        /// uniformly. Default 10. Range: 1 to 1,000,000.
        processes: u32 = processes;
    }

    /// Sets the end of the simulation; the requests before it are settled under the same load after it. Default: 5
    /// minutes, or the [shortest horizon](System::min_horizon) if that is later. Range: above 0, to 76 hours.
    pub const fn horizon(mut self, horizon: Duration) -> Self {
        self.horizon = Some(horizon);
        self
    }

    /// Adds a service.
    pub fn service(mut self, service: Service) -> Self {
        self.services.push(service);
        self
    }

    /// Adds an edge. The edges out of a service are called in the order in which they were added.
    pub fn edge(mut self, edge: Edge) -> Self {
        self.edges.push(edge);
        self
    }

    /// Adds a trigger.
    pub fn trigger(mut self, trigger: Trigger) -> Self {
        self.triggers.push(trigger);
        self
    }

    /// Removes all triggers.
    pub fn without_triggers(mut self) -> Self {
        self.triggers.clear();
        self
    }

    /// Builds the system.
    ///
    /// # Errors
    /// [`SystemError`] with all problems: a value out of its range, a name that no service has, no edge from the users
    /// or several, a service that is not called or that calls itself, or a run with too many requests.
    pub fn build(self) -> Result<System, SystemError> {
        let mut problems = Vec::new();
        self.check_whole(&mut problems);
        self.check_services(&mut problems);
        self.check_edges(&mut problems);
        self.check_triggers(&mut problems);
        let graph = self.resolve(&mut problems);
        let horizon = self.end();
        if problems.is_empty() { Ok(System { settings: self, graph, horizon }) } else { Err(SystemError { problems }) }
    }

    /// Returns the horizon, given or by default.
    fn end(&self) -> Duration {
        self.horizon.unwrap_or_else(|| {
            // A rate beyond its range is a problem of its own.
            let shortest = shortest_horizon(self.fault().1, self.rate.max(1e-6));
            DEFAULT_HORIZON.max(shortest.min(MAX_HORIZON))
        })
    }

    fn fault(&self) -> (Duration, Duration) {
        let triggers = &self.triggers;
        let start = triggers.iter().map(|trigger| trigger.at).min().unwrap_or_default();
        let ends = triggers.iter().map(|trigger| trigger.at.saturating_add(trigger.length));
        (start, ends.max().unwrap_or_default())
    }

    fn check_whole(&self, problems: &mut Vec<SystemProblem>) {
        let mut check = checker(problems, SystemPart::Whole, "system");
        check((1e-6..=1e6).contains(&self.rate), "the rate is not between 0.000001 and 1,000,000 per second");
        check((1..=1_000_000).contains(&self.processes), "the number of processes is not between 1 and 1,000,000");
        check(is_length(self.end(), MAX_HORIZON), "the horizon is 0 or above 76 hours");
        check(!self.services.is_empty() && self.services.len() <= 64, "there are no services, or more than 64");
        check(self.edges.len() <= 256, "there are more than 256 edges");
        check(self.triggers.len() <= 256, "there are more than 256 triggers");
        let spikes = self.triggers.iter().map(|trigger| match trigger.fault {
            Fault::Spike(factor) => factor.max(1.0),
            _ => 1.0,
        });
        let requests = self.rate * 2.0 * (self.end().as_secs_f64() + 1.0) * spikes.product::<f64>();
        check(
            requests <= System::MAX_REQUESTS,
            "a run would have more than a billion requests; lower rate, spike or horizon",
        );
        let guarded = self.edges.iter().filter(|edge| edge.guards.is_some()).count() as u64;
        let most = self.services.iter().map(|service| service.instances).max().unwrap_or(0).max(self.processes);
        check(
            guarded * u64::from(most) <= 4_000_000,
            "there are more than 4,000,000 guards; lower processes or instances",
        );
    }

    fn check_services(&self, problems: &mut Vec<SystemProblem>) {
        for (nth, service) in self.services.iter().enumerate() {
            let mut check = checker(problems, SystemPart::Service(nth), &service.name);
            check(!service.name.is_empty(), "it has no name");
            check(self.services[..nth].iter().all(|other| other.name != service.name), "its name is not unique");
            check((1..=1_000_000).contains(&service.workers), "the number of workers is not between 1 and 1,000,000");
            check(is_length(service.time, HOUR), "the service time is 0 or above an hour");
            match &service.times {
                Times::Gamma(variation) => {
                    check((0.0..=10.0).contains(variation), "the variation of service times is not between 0 and 10");
                }
                Times::Measured(quantiles) => {
                    check(
                        (2..=1_001).contains(&quantiles.len()),
                        "the number of measured service times is not between 2 and 1,001",
                    );
                    check(
                        quantiles.is_sorted(),
                        "measured service times decrease; list them from the least to the longest",
                    );
                    check(quantiles.iter().all(|time| *time <= HOUR), "a measured service time is above an hour");
                }
                Times::Fixed | Times::Exponential => {}
            }
            check((1..=Service::MAX_BACKLOG).contains(&service.backlog), "the backlog is not between 1 and 16,777,216");
            check(
                (1..=1_000_000).contains(&service.instances),
                "the number of instances is not between 1 and 1,000,000",
            );
        }
    }

    fn check_edges(&self, problems: &mut Vec<SystemProblem>) {
        for (nth, edge) in self.edges.iter().enumerate() {
            let name = format!("edge to {}", edge.to);
            let mut check = checker(problems, SystemPart::Edge(nth), &name);
            let most = if edge.from.is_none() { 1 } else { 1_000 };
            check(
                (1..=most).contains(&edge.calls),
                "the number of calls is not between 1 and 1,000, or the users make several",
            );
            check(is_length(edge.timeout, HOUR), "the time limit is 0 or above an hour");
            let [least, longest] = edge.one_way;
            check(least <= longest && longest <= HOUR, "the one-way delay is above an hour, or its bounds are swapped");
            if let Some(cache) = edge.cache {
                check((0.0..=1.0).contains(&cache.hot), "the share of hot keys is not between 0 and 1");
                check(
                    (1..=100_000_000).contains(&cache.keys),
                    "the number of hot keys is not between 1 and 100,000,000",
                );
            }
        }
    }

    fn check_triggers(&self, problems: &mut Vec<SystemProblem>) {
        for (nth, trigger) in self.triggers.iter().enumerate() {
            let name = format!("trigger {}", nth + 1);
            let mut check = checker(problems, SystemPart::Trigger(nth), &name);
            let is_in_time = trigger.at.checked_add(trigger.length).is_some_and(|end| end <= self.end());
            check(is_in_time, "it does not end before the horizon");
            match trigger.fault {
                Fault::Share(share) | Fault::Error(share) => {
                    check((0.0..=1.0).contains(&share), "its share is not between 0 and 1");
                }
                Fault::SlowStart(factor) | Fault::SlowArrival(factor) | Fault::Spike(factor) => {
                    check((1e-3..=1e3).contains(&factor), "its factor is not between 0.001 and 1,000");
                }
                Fault::Reject | Fault::Workers(_) | Fault::Cold => {}
            }
        }
    }

    fn resolve(&self, problems: &mut Vec<SystemProblem>) -> Graph {
        let mut find = |part, name: &str| {
            let found = self.services.iter().position(|service| service.name == name);
            if found.is_none() {
                let names: Vec<_> = self.services.iter().map(|service| &*service.name).collect();
                let known = names.join(", ");
                problems.push(SystemProblem::new(part, format!("unknown service `{name}`; expected one of: {known}")));
            }
            found.unwrap_or(0)
        };
        let mut graph = Graph { out: vec![Vec::new(); self.services.len()], ..Graph::default() };
        let mut entries = Vec::new();
        for (nth, edge) in self.edges.iter().enumerate() {
            graph.to.push(find(SystemPart::Edge(nth), &edge.to));
            match &edge.from {
                None => entries.push(nth),
                Some(from) => {
                    let from = find(SystemPart::Edge(nth), from);
                    if let Some(out) = graph.out.get_mut(from) {
                        out.push(nth);
                    }
                }
            }
        }
        for (nth, trigger) in self.triggers.iter().enumerate() {
            let last = self.services.len().saturating_sub(1);
            graph.targets.push(match &trigger.on {
                Some(name) => find(SystemPart::Trigger(nth), name),
                None => last,
            });
        }
        match entries[..] {
            [entry] => graph.entry = entry,
            _ => problems.push(SystemProblem::new(
                SystemPart::Whole,
                format!("{} edges lead out of the users; there must be one", entries.len()),
            )),
        }
        if problems.is_empty() {
            self.check_reach(&graph, problems);
        }
        graph
    }

    /// Finds services that call themselves, and those that are never called.
    fn check_reach(&self, graph: &Graph, problems: &mut Vec<SystemProblem>) {
        // Services whose callers are all known, in their order: what remains is in a cycle, or behind one.
        let mut callers = vec![0_usize; self.services.len()];
        graph.to.iter().for_each(|&to| callers[to] += 1);
        let mut ready: Vec<_> = (0..self.services.len()).filter(|&service| callers[service] == 0).collect();
        for &service in &ready {
            let message = format!("{}: nothing calls it", self.services[service].name);
            problems.push(SystemProblem::new(SystemPart::Service(service), message));
        }
        let mut called = vec![false; self.services.len()];
        let entry = graph.to[graph.entry];
        callers[entry] -= 1;
        if callers[entry] == 0 {
            ready.push(entry);
        }
        while let Some(service) = ready.pop() {
            called[service] = true;
            for &edge in &graph.out[service] {
                callers[graph.to[edge]] -= 1;
                if callers[graph.to[edge]] == 0 {
                    ready.push(graph.to[edge]);
                }
            }
        }
        for service in (0..called.len()).filter(|&service| !called[service]) {
            let message = format!("{}: it calls itself, or is called from a cycle", self.services[service].name);
            problems.push(SystemProblem::new(SystemPart::Service(service), message));
        }
    }
}

/// The default horizon, unless a recovery can only be seen later.
const DEFAULT_HORIZON: Duration = Duration::from_secs(300);

const HOUR: Duration = Duration::from_secs(3_600);
const MAX_HORIZON: Duration = Duration::from_secs(76 * 3_600);

fn is_length(length: Duration, most: Duration) -> bool {
    !length.is_zero() && length <= most
}

/// Returns a function that adds a problem if its condition is false.
fn checker<'a>(problems: &'a mut Vec<SystemProblem>, part: SystemPart, name: &'a str) -> impl FnMut(bool, &str) + 'a {
    move |is_right, message| {
        if !is_right {
            problems.push(SystemProblem::new(part, format!("{name}: {message}")));
        }
    }
}

/// Why a system cannot be simulated: all problems, in a fixed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemError {
    pub(super) problems: Vec<SystemProblem>,
}

/// One problem of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemProblem {
    part: SystemPart,
    message: String,
}

/// The part of a system that has a problem. Parts are numbered from 0, in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SystemPart {
    /// The users, the horizon, or the system as a whole.
    Whole,
    /// A service.
    Service(usize),
    /// An edge.
    Edge(usize),
    /// A trigger.
    Trigger(usize),
}

impl SystemError {
    /// Returns the problems.
    #[must_use]
    pub fn problems(&self) -> &[SystemProblem] {
        &self.problems
    }
}

impl SystemProblem {
    pub(super) fn new(part: SystemPart, message: impl Into<String>) -> Self {
        Self { part, message: message.into() }
    }

    /// Returns the part that has the problem.
    #[must_use]
    pub const fn part(&self) -> SystemPart {
        self.part
    }
}

impl fmt::Display for SystemProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }
}

impl core::error::Error for SystemError {}
